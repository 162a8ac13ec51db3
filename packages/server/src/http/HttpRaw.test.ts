/** Raw binary requests: a body without a document. */
import { gzipSync } from "node:zlib"
import { assert, it } from "@effect/vitest"
import { Effect, Layer, Result } from "effect"
import { Model, Tensor } from "@nereid/core"
import { decodeResponse } from "@nereid/core/internal/codec/json/BinaryExtension"
import { type HttpReply, inferModel, json, serve } from "./HttpInfer.fixture.ts"

class Numbers extends Model.Service<Numbers>()("numbers", {
  inputs: { X: Tensor.FP32(2, "n") },
  outputs: { Y: Tensor.FP32(2, "n") },
  maxBatchSize: 8,
}) {}

class Text extends Model.Service<Text>()("text", {
  inputs: { X: Tensor.BYTES(1) },
  outputs: { Y: Tensor.BYTES(1) },
}) {}

class Texts extends Model.Service<Texts>()("texts", {
  inputs: { X: Tensor.BYTES("n") },
  outputs: { Y: Tensor.BYTES("n") },
}) {}

class Open extends Model.Service<Open>()("open", {
  inputs: { X: Tensor.FP32("n", "m") },
  outputs: { Y: Tensor.FP32("n", "m") },
}) {}

class Three extends Model.Service<Three>()("three", {
  inputs: { A: Tensor.FP32(1), B: Tensor.FP32(1), C: Tensor.FP32(1) },
  outputs: { Y: Tensor.FP32(1) },
}) {}

const models = Layer.mergeAll(
  Model.each(Numbers, ({ X }) => Effect.succeed({ Y: X })),
  Model.each(Text, ({ X }) => Effect.succeed({ Y: X })),
  Model.each(Texts, ({ X }) => Effect.succeed({ Y: X })),
  Model.each(Open, ({ X }) => Effect.succeed({ Y: X })),
  Model.each(Three, ({ A }) => Effect.succeed({ Y: A })),
)

const serveAll = serve(models, [Numbers, Text, Texts, Open, Three])

const raw = { "inference-header-content-length": "0" }

const output = (response: HttpReply) => {
  assert.deepStrictEqual([response.status, response.headers["content-type"]], [200, "application/octet-stream"])
  const length = Number(response.headers["inference-header-content-length"])
  const [tensor] = Result.getOrThrow(decodeResponse(new Uint8Array(response.body), length)).outputs
  assert(tensor !== undefined)
  return tensor
}

it.live("the body is the input, all outputs come as binary data", () =>
  Effect.gen(function* () {
    const server = yield* serveAll
    const bytes = new Uint8Array(Float32Array.of(1, 2, 3, 4, 5, 6).buffer)
    const numbers = { name: "Y", datatype: "FP32", shape: [1, 2, 3], bytes }
    assert.deepStrictEqual(output(yield* inferModel(server, "numbers", bytes, raw)), numbers)
    assert.deepStrictEqual(output(yield* inferModel(server, "numbers/versions/1", bytes, raw)), numbers)
    const packed = yield* inferModel(server, "numbers", gzipSync(bytes), { ...raw, "content-encoding": "gzip" })
    assert.deepStrictEqual(output(packed), numbers)
    for (const text of ["", "\u0000 naïve"]) {
      const length = Buffer.byteLength(text)
      const { shape, bytes } = output(yield* inferModel(server, "text", text, raw))
      assert.deepStrictEqual(
        [shape, Buffer.from(bytes).toString()],
        [[1], `${String.fromCodePoint(length)}\0\0\0${text}`],
      )
    }
  }),
)

it.live("refuses a shape that cannot be deduced or does not fit, and an unknown model", () =>
  Effect.gen(function* () {
    const server = yield* serveAll
    const cases = [
      [
        "three",
        "Raw request must only have 1 input (found 1) to be deduced but got 3 inputs in 'three' model configuration",
      ],
      [
        "open",
        "The shape of the raw input 'X' can not be deduced because there are more than one variable-sized dimension",
      ],
      ["texts", "For BYTE datatype raw input 'X', the model must have input shape [1]"],
      ["numbers", "input byte size mismatch for input 'X' for model 'numbers'. Expected 8, got 12"],
    ] as const
    for (const [model, text] of cases) {
      const response = yield* inferModel(server, model, new Uint8Array(12), raw)
      assert.deepStrictEqual([response.status, json(response)], [400, { error: `[request id: <id_unknown>] ${text}` }])
    }
    const unknown = yield* inferModel(server, "nope", "x", raw)
    assert.deepStrictEqual([unknown.status, unknown.headers["nereid-error"]], [404, "ModelNotFound"])
  }),
)
