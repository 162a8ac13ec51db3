import { Result } from "effect"
import { expect, it } from "vitest"
import * as Model from "@nereid/core/Model"
import * as Tensor from "@nereid/core/Tensor"
import { encodeElements } from "@nereid/core/internal/tensor/TypedTensor"
import type { WireTensor } from "@nereid/core/internal/wire/WireRequest"
import { check } from "./OutputCheck.ts"

class M extends Model.Service<M>()("m", {
  inputs: { X: Tensor.FP32(2) },
  outputs: { Y: Tensor.FP32(2, "n"), TEXT: Tensor.BYTES(1) },
  maxBatchSize: 4,
}) {}

const y: WireTensor = { name: "Y", datatype: "FP32", shape: [1, 2, 3], bytes: new Uint8Array(24) }
const text: WireTensor = {
  name: "TEXT",
  datatype: "BYTES",
  shape: [1, 1],
  bytes: encodeElements([new Uint8Array([1, 2, 3])]),
}

const checked = (outputs: ReadonlyArray<WireTensor>, rows: number | undefined = 1) =>
  Result.match(
    check(
      { name: "m", signature: M.definition.signature, rows },
      { modelName: "m", modelVersion: "1", id: "", parameters: {}, outputs },
    ),
    {
      onSuccess: (response) => response.outputs.map((tensor) => [tensor?.datatype, tensor?.shape]),
      onFailure: ({ message }) => message.replace(" of model 'm' in the server's response", ""),
    },
  )

it("puts outputs into the order of the signature and leaves out what is not declared", () => {
  const more = { name: "MORE", datatype: "FP32", shape: [1], bytes: new Uint8Array(4) }
  expect(checked([more, text, y])).toEqual([
    ["FP32", [1, 2, 3]],
    ["BYTES", [1, 1]],
  ])
})

it.each<[string, ReadonlyArray<WireTensor>, string]>([
  ["no outputs", [], "output 'Y': is missing; the response has no outputs"],
  ["another name", [{ ...y, name: "Z" }, text], "output 'Y': is missing; the response has 'Z', 'TEXT'"],
  ["another datatype", [{ ...y, datatype: "FP64" }, text], `output 'Y': expected FP32[1,2,"n"], got FP64[1,2,3]`],
  ["an unknown datatype", [{ ...y, datatype: "X" }, text], `output 'Y': expected FP32[1,2,"n"], got X[1,2,3]`],
  ["another extent", [{ ...y, shape: [1, 3, 2] }, text], `output 'Y': expected FP32[1,2,"n"], got FP32[1,3,2]`],
  ["another rank", [{ ...y, shape: [2, 3] }, text], `output 'Y': expected FP32[1,2,"n"], got FP32[2,3]`],
  ["more rows", [{ ...y, shape: [2, 2, 3] }, text], `output 'Y': expected FP32[1,2,"n"], got FP32[2,2,3]`],
  ["no shape", [{ ...y, shape: [] }, text], `output 'Y': expected FP32[1,2,"n"], got FP32[]`],
  ["a negative extent", [{ ...y, shape: [1, 2, -1] }, text], `output 'Y': expected FP32[1,2,"n"], got FP32[1,2,-1]`],
  [
    "a huge extent",
    [{ ...y, shape: [1, 2, 2 ** 60] }, text],
    `expected FP32[1,2,"n"], got FP32[1,2,1152921504606847000]`,
  ],
  ["fewer bytes", [{ ...y, bytes: new Uint8Array(20) }, text], "output 'Y': expected 24 bytes for FP32[1,2,3], got 20"],
  ["no bytes", [{ ...y, bytes: new Uint8Array(0) }, text], "output 'Y': expected 24 bytes for FP32[1,2,3], got 0"],
  ["no element", [y, { ...text, bytes: new Uint8Array(0) }], "output 'TEXT': expected 1 elements, got 0"],
  [
    "a cut length",
    [y, { ...text, bytes: new Uint8Array(3) }],
    "output 'TEXT': element 0 needs 4 bytes, but 3 are left",
  ],
  [
    "a cut element",
    [y, { ...text, bytes: text.bytes.subarray(0, 6) }],
    "output 'TEXT': element 0 needs 3 bytes, but 2 are left",
  ],
])("%s is refused", (_, outputs, message) => {
  expect(checked(outputs)).toContain(message)
})
