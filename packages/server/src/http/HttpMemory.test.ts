/** Memory of large HTTP requests: released after the response, and not before. */
import { gzipSync } from "node:zlib"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { Model, Tensor } from "@nereid/core"
import { decodeResponse, encodeRequest } from "@nereid/core/internal/codec/json/BinaryExtension"
import type { Parameters } from "@nereid/core/internal/request/Request"
import { type HttpReply, inferModel, serve } from "./HttpInfer.fixture.ts"

class Mirror extends Model.Service<Mirror>()("mirror", {
  inputs: { X: Tensor.FP32("n") },
  outputs: { Y: Tensor.FP32("n") },
}) {}

const count = 150_000

/** Answers with the input of the request before. */
class Last extends Model.Service<Last>()("last", {
  inputs: { X: Tensor.FP32(count) },
  outputs: { Y: Tensor.FP32(count) },
  sequence: { state: { LAST: Tensor.FP32(count) } },
}) {}
const picture = Float32Array.from({ length: count }, (_, index) => index / 8)

const bytesOf = ({ buffer }: Float32Array) => new Uint8Array(buffer)

/** Request with binary data, after a JSON document that is `more` characters longer. */
const binary = (data: Float32Array, more = 0, parameters: Parameters = {}) => {
  const bytes = bytesOf(data)
  const inputs = [{ name: "X", datatype: "FP32", shape: [data.length], bytes }]
  const wire = { modelName: "", modelVersion: "", id: "i".repeat(more), parameters, inputs, outputs: [] }
  const { headerLength, body } = encodeRequest(wire)
  return { body, headers: { "inference-header-content-length": headerLength } }
}

const json = (data: Float32Array) => ({
  body: JSON.stringify({ inputs: [{ name: "X", datatype: "FP32", shape: [data.length], data: [...data] }] }),
  headers: {},
})

const floats = (response: HttpReply): Float32Array => {
  assert.strictEqual(response.status, 200, response.body.toString("latin1", 0, 200))
  const length = response.headers["inference-header-content-length"]
  const headerLength = length === undefined ? undefined : Number(length)
  const [output] = Result.getOrThrow(decodeResponse(new Uint8Array(response.body), headerLength)).outputs
  assert(output !== undefined)
  return new Tensor.Tensor("FP32", [count], output.bytes).data
}

/** Handler that keeps its input and returns it, which requires the option `keepsInputs`. */
const served = Effect.fnUntraced(function* (options: Pick<Model.HandlerOptions, "keepsInputs"> = {}) {
  const kept: Array<Uint8Array> = []
  const layer = Model.each(
    Mirror,
    ({ X }) => {
      kept.push(X.bytes)
      const [first = 0] = X.data
      return first < 0 ? Effect.fail(new Error("negative")) : Effect.succeed({ Y: X })
    },
    options,
  )
  return { kept, server: yield* serve(layer, [Mirror]) }
})

const requests = [
  ["binary data", binary(picture)],
  ["JSON", json(picture)],
  [
    "compressed binary data",
    {
      body: gzipSync(binary(picture).body),
      headers: { ...binary(picture).headers, "content-encoding": "gzip", "accept-encoding": "identity" },
    },
  ],
] as const

describe("memory of a large request", () => {
  it.live.each(requests)("stays with a handler that keeps its inputs: %s", ([, { body, headers }]) =>
    Effect.gen(function* () {
      const { kept, server } = yield* served()
      for (let time = 0; time < 3; time++)
        assert.deepStrictEqual(floats(yield* inferModel(server, "mirror", body, headers)), picture)
      for (const bytes of kept) assert(Buffer.compare(bytes, bytesOf(picture)) === 0)
    }),
  )

  it.live.each(requests.slice(0, 2))(
    "is given back where the handler keeps none, once its answer is sent: %s",
    ([, { body, headers }]) =>
      Effect.gen(function* () {
        const { kept, server } = yield* served({ keepsInputs: false })
        for (let time = 0; time < 3; time++)
          assert.deepStrictEqual(floats(yield* inferModel(server, "mirror", body, headers)), picture)
        // The answer to the last one may be here before the server knows that it is sent.
        for (const bytes of kept.slice(0, -1)) assert.strictEqual(bytes.length, 0)
      }),
  )

  it.live("is not that of a state made of it, or of a reply that is kept, where the handler keeps none", () =>
    Effect.gen(function* () {
      const layer = Model.sequence(Last, ({ X }, { state }) => ({ outputs: { Y: state.LAST }, state: { LAST: X } }), {
        keepsInputs: false,
      })
      const server = yield* serve(layer, [Last])
      const infer = (data: Float32Array, parameters: Readonly<Record<string, bigint | boolean>>) => {
        const { body, headers } = binary(data, 0, { binary_data_output: true, sequence_id: 7n, ...parameters })
        return Effect.map(inferModel(server, "last", body, headers), floats)
      }
      const negative = picture.map((value) => -1 - value)
      yield* infer(picture, { sequence_start: true, sequence_number: 1n })
      assert.deepStrictEqual(yield* infer(negative, { sequence_number: 2n }), picture)
      assert.deepStrictEqual(yield* infer(picture, { sequence_number: 3n }), negative)
      assert.deepStrictEqual(yield* infer(picture, { sequence_number: 3n }), negative)
    }),
  )

  it.live("stays where the request failed, and where it is small", () =>
    Effect.gen(function* () {
      const { kept, server } = yield* served({ keepsInputs: false })
      const small = picture.slice(0, 100)
      const negative = picture.map((value) => -1 - value)
      for (const { body, headers } of [json(negative), binary(negative)]) {
        assert.strictEqual((yield* inferModel(server, "mirror", body, headers)).status, 500)
      }
      yield* inferModel(server, "mirror", json(small).body)
      yield* inferModel(server, "mirror", json(small).body)
      const expected = [negative, negative, small, small].map(bytesOf)
      assert(kept.every((bytes, index) => Buffer.compare(bytes, expected[index] ?? new Uint8Array()) === 0))
    }),
  )

  it.live("begins where a handler can read a tensor without a copy, however long the document is", () =>
    Effect.gen(function* () {
      const views: Array<boolean> = []
      const layer = Model.each(Mirror, ({ X }) => {
        views.push(X.data.buffer === X.bytes.buffer)
        return Effect.succeed({ Y: X })
      })
      const server = yield* serve(layer, [Mirror])
      for (let more = 0; more < 8; more++) {
        const { body, headers } = binary(picture, more)
        assert.deepStrictEqual(floats(yield* inferModel(server, "mirror", body, headers)), picture)
      }
      assert.deepStrictEqual(
        views,
        Array.from({ length: 8 }, () => true),
      )
    }),
  )
})
