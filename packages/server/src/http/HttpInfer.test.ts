/**
 * Repeated requests, whose path and document are remembered (RequestTemplates.ts), behave like the first one.
 * HttpServer.test.ts and Tracing.test.ts cover cancelled, late and traced requests.
 */
import type { OutgoingHttpHeaders } from "node:http"
import { connect } from "node:net"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { Model, Tensor } from "@nereid/core"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import * as LateLoop from "../limit/LateLoop.fixture.ts"
import type { LateReading } from "../limit/LateReading.ts"
import { inferModel, json, serve } from "./HttpInfer.fixture.ts"

class Bytes extends Model.Service<Bytes>()("bytes", {
  inputs: { X: Tensor.UINT8("n") },
  outputs: { Y: Tensor.UINT8("n") },
  maxBatchSize: 2,
}) {}

/** Gives back its input, and the parameters of the request. */
const BytesLive = Model.each(Bytes, ({ X }, { parameters, setParameterUnsafe }) =>
  Effect.sync(() => {
    for (const [name, value] of Object.entries(parameters)) setParameterUnsafe(name, value)
    return { Y: X }
  }),
)

const document = (id: string, data: ReadonlyArray<number>) =>
  `{"id":"${id}","inputs":[{"name":"X","datatype":"UINT8","shape":[1,${data.length}],"data":[${data.join()}]}]}`

/** A document, followed by an input of this many bytes. */
const binary = (length: number, bytes: Uint8Array) => {
  const input = { name: "X", datatype: "UINT8", shape: [1, length], parameters: { binary_data_size: length } }
  const text = Buffer.from(JSON.stringify({ inputs: [input], parameters: { binary_data_output: true } }))
  return { body: Buffer.concat([text, bytes]), headers: { "inference-header-content-length": text.length } }
}

const harness = Effect.fnUntraced(function* (options: Parameters<typeof serve>[2] = {}, lateReading?: LateReading) {
  let model: RunningModel | undefined
  const watched = Effect.tap(Bytes, (bytes) => Effect.sync(() => void (model = bytes.model)))
  const at = yield* serve(BytesLive, [watched], options, lateReading)
  return { at, counted: () => model?.description.statistics }
})

it.live("a response has the id and the elements of its request", () =>
  Effect.gen(function* () {
    const { at } = yield* harness()
    for (const [id, data] of [
      ["a", [1, 2]],
      ["b", [3, 4]],
      ["", [5, 6]],
    ] as const) {
      const response = json(yield* inferModel(at, "bytes", document(id, data)))
      const output = { name: "Y", datatype: "UINT8", shape: [1, 2], data }
      const named = { ...(id === "" ? {} : { id }), model_name: "bytes", model_version: "1" }
      assert.deepStrictEqual(response, { ...named, outputs: [output] })
    }
  }),
)

it.live("a request that was read too late for its deadline is refused, and its connection stays", () =>
  Effect.gen(function* () {
    const { lateReading, acted } = LateLoop.make()
    const { at } = yield* harness({}, lateReading)
    const infer = (headers: OutgoingHttpHeaders) => inferModel(at, "bytes", document("a", [1]), headers)
    const { status, headers } = yield* infer({ "nereid-timeout-ms": "70" })
    assert.deepStrictEqual([status, headers["retry-after"], headers.connection], [503, "1", "keep-alive"])
    assert.deepStrictEqual(acted, ["late_reading"])
    assert.strictEqual((yield* infer({ "nereid-timeout-ms": "10000" })).status, 200)
    assert.strictEqual((yield* infer({})).status, 200)
  }),
)

it.live("every byte of a small tensor comes back as it was, and of one that is no longer small", () =>
  Effect.gen(function* () {
    const { at } = yield* harness()
    for (const length of [256, 256, 8_000, 8_300, 70_000]) {
      const bytes = Uint8Array.from({ length }, (_, index) => index)
      const { body, headers } = binary(length, bytes)
      const response = yield* inferModel(at, "bytes", body, headers)
      const head = Number(response.headers["inference-header-content-length"])
      assert.strictEqual(Number(response.headers["content-length"]), response.body.length)
      assert(response.body.subarray(head).equals(bytes), `${length}`)
    }
  }),
)

it.live("a tensor that is too short or too long is refused, after one that is not", () =>
  Effect.gen(function* () {
    const { at, counted } = yield* harness()
    const { headers } = binary(2, Buffer.alloc(2))
    const sent = (bytes: number) => inferModel(at, "bytes", binary(2, Buffer.alloc(bytes)).body, headers)
    assert.strictEqual((yield* sent(2)).status, 200)
    const missing = "unexpected size for input 'X', expecting 1 additional bytes for model 'bytes'"
    assert.deepStrictEqual(json(yield* sent(1)), { error: missing })
    assert.deepStrictEqual(json(yield* sent(3)), { error: "unexpected additional input data for model 'bytes'" })
    assert.strictEqual((yield* sent(2)).status, 200)
    assert.deepStrictEqual(counted()?.success.count, 2)
  }),
)

it.live("more rows than the model takes are refused, each time", () =>
  Effect.gen(function* () {
    const { at } = yield* harness()
    const rows = '{"inputs":[{"name":"X","datatype":"UINT8","shape":[3,1],"data":[1,2,3]}]}'
    for (const _ of [1, 2]) {
      const response = yield* inferModel(at, "bytes", rows)
      assert.strictEqual(response.status, 400)
      assert.deepStrictEqual(json(response), {
        error: "[request id: <id_unknown>] inference request batch-size must be <= 2 for 'bytes'",
      })
    }
  }),
)

it.live("the limit holds for a body like an earlier one", () =>
  Effect.gen(function* () {
    const max = document("a", [1, 2]).length
    const { at } = yield* harness({ maxInputSize: max })
    assert.strictEqual((yield* inferModel(at, "bytes", document("a", [1, 2]))).status, 200)
    assert.strictEqual((yield* inferModel(at, "bytes", document("a", [1, 20]))).status, 400)
  }),
)

it.live("headers that are forwarded are those of the request, and none of an earlier one", () =>
  Effect.gen(function* () {
    const { at } = yield* harness({ forwardHeaders: "^x-" })
    const parameters = Effect.fnUntraced(function* (headers: Record<string, string>) {
      const response = json(yield* inferModel(at, "bytes", document("a", [1, 2]), headers))
      return response !== null && typeof response === "object" && "parameters" in response
        ? response.parameters
        : undefined
    })
    assert.deepStrictEqual(yield* parameters({ "x-one": "1" }), { "x-one": "1" })
    assert.deepStrictEqual(yield* parameters({ "x-two": "2" }), { "x-two": "2" })
    assert.strictEqual(yield* parameters({}), undefined)
  }),
)

it.live("a cached path still requires the secret and the method", () =>
  Effect.gen(function* () {
    const { at } = yield* harness({ restrictedApis: [{ apis: ["inference"], key: "secret", value: "s" }] })
    const status = (headers: Record<string, string>) =>
      Effect.map(inferModel(at, "bytes", document("a", [1, 2]), headers), (response) => response.status)
    assert.deepStrictEqual(
      [
        yield* status({ secret: "s" }),
        yield* status({}),
        yield* status({ secret: "t" }),
        yield* status({ secret: "s" }),
      ],
      [200, 403, 403, 200],
    )
    const got = yield* Effect.promise(() => fetch(`http://127.0.0.1:${at.port}/v2/models/bytes/infer`))
    assert.deepStrictEqual([got.status, got.headers.get("allow")], [405, "POST"])
  }),
)

it.live("pipelined requests that look alike are answered in their order, each with its own", () =>
  Effect.gen(function* () {
    const { at } = yield* harness()
    const requests = Array.from({ length: 50 }, (_, index) => document(`${index}`, [index, 1]))
    const head = "POST /v2/models/bytes/infer HTTP/1.1\r\nhost: x\r\ncontent-length: "
    const text = yield* Effect.callback<string>((resume) => {
      let received = ""
      const socket = connect(at.port, "127.0.0.1")
      const last = (index: number) => (index === requests.length - 1 ? "\r\nconnection: close" : "")
      socket.write(requests.map((body, index) => `${head}${body.length}${last(index)}\r\n\r\n${body}`).join(""))
      socket.on("data", (chunk: Buffer) => (received += chunk.toString("latin1")))
      socket.on("close", () => resume(Effect.succeed(received)))
    })
    const responded = [...text.matchAll(/"id":"(\d+)".*?"data":\[(\d+),1\]/g)].map(([, id, first]) => [id, first])
    assert.deepStrictEqual(
      responded,
      requests.map((_, index) => [`${index}`, `${index}`]),
    )
  }),
)
