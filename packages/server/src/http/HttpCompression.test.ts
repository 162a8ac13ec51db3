/** Compressed HTTP requests and responses, content negotiation, and malicious compressed bodies. */
import { deflateRawSync, deflateSync, gunzipSync, gzipSync, inflateSync } from "node:zlib"
import { assert, describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Result } from "effect"
import { Model, Tensor } from "@nereid/core"
import { decodeResponse, encodeRequest } from "@nereid/core/internal/codec/json/BinaryExtension"
import { preferred } from "./HttpCompression.ts"
import { inferModel, json, serve } from "./HttpInfer.fixture.ts"

class Echo extends Model.Service<Echo>()("echo", {
  inputs: { X: Tensor.FP32("n") },
  outputs: { Y: Tensor.FP32("n") },
}) {}

class Gated extends Model.Service<Gated>()("gated", {
  inputs: { X: Tensor.FP32(1) },
  outputs: { Y: Tensor.FP32(1) },
}) {}

const echo = Model.each(Echo, ({ X }) => Effect.succeed({ Y: X }))

const document = (count: number) =>
  `{"inputs":[{"name":"X","shape":[${count}],"datatype":"FP32","data":[${Array(count).fill(1)}]}]}`

const responded =
  '{"model_name":"echo","model_version":"1","outputs":[{"name":"Y","datatype":"FP32","shape":[1],"data":[1]}]}'

const encodings = [
  { encoding: "gzip", pack: gzipSync, unpack: gunzipSync },
  { encoding: "deflate", pack: deflateSync, unpack: inflateSync },
]

it.each<[header: string | undefined, best: string]>([
  [undefined, "identity"],
  ["", "identity"],
  ["gzip", "gzip"],
  ["deflate, gzip", "deflate"],
  ["GZIP;Q=0.5 , deflate ; q=0.8", "deflate"],
  ["gzip;q=0.5, identity;q=0.6", "identity"],
  ["gzip;q=0", "identity"],
  ["gzip;q=0, deflate;q=0.001", "deflate"],
  ["br, zstd;q=0.9", "identity"],
  ["br, gzip;q=0.1", "gzip"],
  ["*", "identity"],
  ["identity;q=0, *", "gzip"],
  ["*;q=0.5, gzip;q=0.6", "gzip"],
  ["identity;q=0", "identity"],
  ["gzip;q=high, deflate;q=7", "identity"],
  [",,;q=1,", "identity"],
])("an answer to Accept-Encoding '%s' is in %s", (header, best) => {
  expect(preferred(header)).toBe(best)
})

it("an answer that has no deflate is in gzip", () => {
  expect(preferred("deflate, gzip;q=0.5", ["identity", "gzip"])).toBe("gzip")
  expect(preferred("identity;q=0, deflate, *", ["identity", "gzip"])).toBe("gzip")
})

describe("over a socket", () => {
  it.live("a compressed body is as good as its plain one", () =>
    Effect.gen(function* () {
      const server = yield* serve(echo, [Echo])
      for (const { encoding, pack } of encodings) {
        for (const name of [encoding, ` ${encoding.toUpperCase()} `]) {
          const response = yield* inferModel(server, "echo", pack(document(1)), { "content-encoding": name })
          assert.deepStrictEqual([response.status, response.body.toString()], [200, responded])
          assert.isUndefined(response.headers["content-encoding"])
        }
      }
      const plain = yield* inferModel(server, "echo", document(1), { "content-encoding": "identity" })
      assert.strictEqual(plain.status, 200)
    }),
  )

  it.live("header lengths are of the uncompressed body, both ways, and an answer is compressed on request", () =>
    Effect.gen(function* () {
      const server = yield* serve(echo, [Echo])
      const bytes = new Uint8Array(Float32Array.from({ length: 500_000 }, (_, index) => index % 100).buffer)
      const inputs = [{ name: "X", datatype: "FP32", shape: [500_000], bytes }]
      const wire = { modelName: "echo", modelVersion: "", id: "", parameters: {}, inputs, outputs: [] }
      const { headerLength, body } = encodeRequest(wire)
      for (const { encoding, pack, unpack } of encodings) {
        const response = yield* inferModel(server, "echo", pack(body), {
          "content-encoding": encoding,
          "accept-encoding": encoding,
          "inference-header-content-length": headerLength,
        })
        assert.deepStrictEqual([response.status, response.headers["content-encoding"]], [200, encoding])
        assert.strictEqual(response.headers["content-length"], String(response.body.length))
        assert.isBelow(response.body.length, bytes.length / 10)
        const length = Number(response.headers["inference-header-content-length"])
        const [output] = Result.getOrThrow(decodeResponse(unpack(response.body), length)).outputs
        assert(output !== undefined && Buffer.compare(output.bytes, bytes) === 0)
      }
      const small = yield* inferModel(server, "echo", document(1), { "accept-encoding": "gzip" })
      assert.deepStrictEqual(
        [small.headers["content-type"], small.headers["content-encoding"]],
        ["application/json", "gzip"],
      )
      assert.strictEqual(gunzipSync(small.body).toString(), responded)
    }),
  )

  it.live("the limit holds for what comes and for what comes out of it", () =>
    Effect.gen(function* () {
      const maxInputSize = 100_000
      const server = yield* serve(echo, [Echo], { maxInputSize })
      const limited = "exceeds the maximum allowed input size of 100000 bytes. Use --http-max-input-size to increase"
      const tooLarge =
        "decompressed request size exceeds the maximum allowed value of 100000 bytes. " +
        "Use --http-max-input-size to increase the limit."
      const largest = document(1).padEnd(maxInputSize)
      for (const { encoding, pack } of encodings) {
        const headers = { "content-encoding": encoding }
        for (const body of [`${largest} `, Buffer.alloc(50_000_000)]) {
          const response = yield* inferModel(server, "echo", pack(body), headers)
          assert.deepStrictEqual([response.status, response.headers["nereid-error"]], [400, "InvalidRequest"])
          assert.strictEqual(response.body.toString(), JSON.stringify({ error: tooLarge }))
        }
        const whole = yield* inferModel(server, "echo", pack(largest), headers)
        assert.deepStrictEqual([whole.status, whole.body.toString()], [200, responded])
        const sent = yield* inferModel(server, "echo", Buffer.alloc(maxInputSize + 1), headers)
        assert.include(sent.body.toString(), `"request JSON size of 100001 bytes ${limited}`)
      }
    }),
  )

  it.live("a body that contradicts its encoding is a 400, an unknown encoding a 415 with the known ones", () =>
    Effect.gen(function* () {
      const server = yield* serve(echo, [Echo])
      const whole = gzipSync(document(1))
      for (const [encoding, body, problem] of [
        ["gzip", document(1), "incorrect header check"],
        ["gzip", deflateSync(document(1)), "incorrect header check"],
        ["gzip", whole.subarray(0, -9), "unexpected end of file"],
        ["gzip", "", "unexpected end of file"],
        ["deflate", deflateRawSync(document(1)), "incorrect header check"],
      ] as const) {
        const response = yield* inferModel(server, "echo", body, { "content-encoding": encoding })
        const error = `failed to decompress the ${encoding} body of ${body.length} bytes: ${problem}`
        assert.deepStrictEqual([response.status, json(response)], [400, { error }])
      }
      const damaged = Buffer.from(whole)
      damaged.fill(255, 12, 20)
      assert.strictEqual((yield* inferModel(server, "echo", damaged, { "content-encoding": "gzip" })).status, 400)
      for (const encoding of ["br", "gzip, gzip", "x"]) {
        const response = yield* inferModel(server, "echo", whole, { "content-encoding": encoding })
        assert.deepStrictEqual([response.status, json(response)], [415, { error: "Unsupported compression type" }])
        assert.strictEqual(response.headers["accept-encoding"], "gzip, deflate")
      }
    }),
  )

  it.live("a caller that goes away takes its request back", () =>
    Effect.gen(function* () {
      const started = yield* Deferred.make<void>()
      const ended = yield* Deferred.make<void>()
      const gated = Model.each(Gated, ({ X }) =>
        Deferred.succeed(started, undefined).pipe(
          Effect.andThen(Effect.never),
          Effect.onInterrupt(() => Deferred.succeed(ended, undefined)),
          Effect.as({ Y: X }),
        ),
      )
      const server = yield* serve(gated, [Gated])
      const headers = { "content-encoding": "gzip", "accept-encoding": "gzip" }
      const request = yield* Effect.forkChild(inferModel(server, "gated", gzipSync(document(1)), headers))
      yield* Deferred.await(started)
      yield* Fiber.interrupt(request)
      yield* Deferred.await(ended)
    }),
  )
})
