/** Responses of the generate extension (C30). */
import { assert, expect, it } from "@effect/vitest"
import { Result } from "effect"
import { encodeGenerated } from "./GenerateEncoder.ts"
import { encodeElements } from "../../tensor/TypedTensor.ts"
import type { WireResponse, WireTensor } from "../../wire/WireRequest.ts"

const encoder = new TextEncoder()

const texts = (name: string, shape: ReadonlyArray<number>, ...elements: ReadonlyArray<string>): WireTensor => ({
  name,
  datatype: "BYTES",
  shape,
  bytes: encodeElements(elements.map((element) => encoder.encode(element))),
})

const response = (outputs: ReadonlyArray<WireTensor>, more: Partial<WireResponse> = {}): WireResponse => ({
  modelName: "m",
  modelVersion: "2",
  id: "",
  parameters: {},
  outputs,
  ...more,
})

const written = (of: WireResponse) => new TextDecoder().decode(Result.getOrThrow(encodeGenerated(of)))

it("C30: one element is a value, several are a flat array, none is an empty one", () => {
  const outputs = [
    texts("ONE", [1, 1], 'a "word"\n'),
    texts("MANY", [1, 2], "a", "b"),
    texts("NONE", [1, 0]),
    { name: "LONG", datatype: "INT64", shape: [], bytes: new Uint8Array(BigInt64Array.of(2n ** 63n - 1n).buffer) },
    { name: "FLAG", datatype: "BOOL", shape: [1], bytes: Uint8Array.of(1) },
    { name: "MATRIX", datatype: "FP32", shape: [2, 2], bytes: new Uint8Array(Float32Array.of(1, 0.1, NaN, -0).buffer) },
  ]
  expect(written(response(outputs))).toBe(
    '{"model_name":"m","model_version":"2","ONE":"a \\"word\\"\\n","MANY":["a","b"],"NONE":[],' +
      '"LONG":9223372036854775807,"FLAG":true,"MATRIX":[1,0.1,NaN,-0.0]}',
  )
})

it("the id comes first and parameters last", () => {
  const parameters = { index: 3n, score: 1, done: false, reason: "stop" }
  expect(written(response([texts("T", [1], "x")], { id: "7", parameters }))).toBe(
    '{"id":"7","model_name":"m","model_version":"2","T":"x","index":3,"score":1.0,"done":false,"reason":"stop"}',
  )
})

it("no name stands twice: outputs go before parameters", () => {
  const parameters = { T: 1n, model_name: "other", id: "p" }
  expect(written(response([texts("T", [1], "x"), texts("model_version", [1], "y")], { parameters }))).toBe(
    '{"model_name":"m","T":"x","model_version":"y","id":"p"}',
  )
})

it("refuses outputs that JSON cannot represent, and bytes that are not text", () => {
  const half = { name: "H", datatype: "FP16", shape: [1], bytes: new Uint8Array(2) }
  const binary = { name: "B", datatype: "BYTES", shape: [1], bytes: encodeElements([Uint8Array.of(0xff)]) }
  for (const [output, message] of [
    [half, "sending FP16 data via JSON is not supported. Please use the binary data format for output H"],
    [binary, "element 0 of output 'B' is not UTF-8 text and cannot be sent as JSON."],
  ] as const) {
    const encoded = encodeGenerated(response([output]))
    assert(Result.isFailure(encoded))
    expect(encoded.failure.message).toContain(message)
  }
})
