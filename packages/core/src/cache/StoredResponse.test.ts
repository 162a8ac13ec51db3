/** Responses as bytes and back, and bytes that are no responses. */
import { expect, it } from "vitest"
import { noParameters, type Response } from "../request/Request.ts"
import { make } from "../tensor/TypedTensor.ts"
import { decode, encode } from "./StoredResponse.ts"

const response: Response = {
  outputs: [
    make("FP64", [2], Float64Array.of(1, Number.NaN)),
    undefined,
    make("BYTES", [2], [Uint8Array.of(255), new Uint8Array()]),
    make("INT8", [0, 3], new Int8Array()),
  ],
  parameters: { text: "größe", count: 2n ** 62n, share: 0.5, flag: false },
}

it("decodes what it encodes", () => {
  const decoded = decode(encode(response))
  expect(decoded?.parameters).toEqual(response.parameters)
  expect(decoded?.outputs.map((tensor) => tensor && [tensor.datatype, tensor.shape, [...tensor.bytes]])).toEqual(
    response.outputs.map((tensor) => tensor && [tensor.datatype, tensor.shape, [...tensor.bytes]]),
  )
  expect(decode(encode({ outputs: [], parameters: noParameters }))?.parameters).toBe(noParameters)
})

it("decodes nothing of bytes that are cut off or go on", () => {
  const bytes = encode(response)
  for (let length = 0; length < bytes.length; length++) expect(decode(bytes.subarray(0, length))).toBeUndefined()
  expect(decode(Uint8Array.of(...bytes, 0))).toBeUndefined()
})

const withHeader = (header: unknown, content = new Uint8Array()) => {
  const text = new TextEncoder().encode(JSON.stringify(header))
  const bytes = new Uint8Array([...new Uint8Array(Uint32Array.of(text.length).buffer), ...text, ...content])
  return decode(bytes)
}

it.each([
  ["another datatype", { datatype: "FP8", shape: [1], length: 1 }, 1],
  ["a shape that contradicts its length", { datatype: "FP32", shape: [2], length: 4 }, 4],
  ["a negative extent", { datatype: "FP32", shape: [-1, -1], length: 4 }, 4],
  ["a negative length", { datatype: "BYTES", shape: [0], length: -1 }, 0],
  ["another number of strings", { datatype: "BYTES", shape: [2], length: 4 }, 4],
  ["a string that is cut off", { datatype: "BYTES", shape: [1], length: 5 }, 5],
  ["no tensor", "x", 0],
])("decodes nothing of %s", (_, output, length) => {
  const content = new Uint8Array(length).fill(0)
  if (length === 5) content[0] = 2
  expect(withHeader({ outputs: [output], parameters: [] }, content)).toBeUndefined()
})

it("decodes nothing of an invalid parameter", () => {
  for (const parameter of [["a", "bigint", "x"], ["a", "symbol", "x"], ["a"], 1]) {
    expect(withHeader({ outputs: [], parameters: [parameter] })).toBeUndefined()
  }
})
