/** The HTTP port over real sockets, with correct, invalid, broken and disconnecting clients. */
import { ModelStore } from "@nereid/core/internal/lifecycle/ModelStore"
import { Agent, type IncomingHttpHeaders, request as httpRequest, type RequestOptions } from "node:http"
import { connect } from "node:net"
import { gzipSync } from "node:zlib"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Latch, Layer, Logger, Queue, Result, Scope } from "effect"
import * as fc from "fast-check"
import { Model, Tensor } from "@nereid/core"
import { decodeResponse, encodeRequest } from "@nereid/core/internal/codec/json/BinaryExtension"
import * as Gateway from "../gateway/Gateway.ts"
import * as HttpServer from "./HttpServer.ts"
import * as MetricsServer from "../metrics/MetricsServer.ts"

class Echo extends Model.Service<Echo>()("echo", {
  inputs: { X: Tensor.FP32("n") },
  outputs: { Y: Tensor.FP32("n") },
  maxBatchSize: 8,
}) {}

class Types extends Model.Service<Types>()("types of all", {
  inputs: { TEXT: Tensor.BYTES(-1), LONG: Tensor.INT64(-1), HALF: Tensor.FP16(-1), FLAG: Tensor.BOOL(-1) },
  outputs: { TEXT: Tensor.BYTES(-1), LONG: Tensor.INT64(-1), HALF: Tensor.FP16(-1), FLAG: Tensor.BOOL(-1) },
}) {}

class Gated extends Model.Service<Gated>()("gated", {
  inputs: { X: Tensor.FP32(1) },
  outputs: { Y: Tensor.FP32(1) },
  maxBatchSize: 1,
}) {}

/** Batches of `gated` that have begun, each to be let go by the test. */
const makeGates = Queue.unbounded<Deferred.Deferred<void>>()

const harness = Effect.fnUntraced(function* (options: Partial<HttpServer.HttpServerOptions> = {}) {
  const started = yield* makeGates
  const layers = Layer.mergeAll(
    Model.each(Echo, ({ X }) => Effect.succeed({ Y: X })),
    Model.each(Types, (sample) => Effect.succeed(sample)),
    Model.batch(Gated, ({ X }) =>
      Effect.gen(function* () {
        const gate = yield* Deferred.make<void>()
        yield* Queue.offer(started, gate)
        yield* Deferred.await(gate)
        return { Y: X }
      }),
    ),
  )
  const context = yield* Layer.build(layers)
  const models = yield* Effect.all([Echo, Types, Gated]).pipe(Effect.provide(context))
  const running = models.map(({ model }) => model)
  const gateway = Gateway.make(ModelStore.of(running), { id: "nereid", version: "0" })
  const scope = yield* Scope.fork(yield* Scope.Scope)
  const { port } = yield* HttpServer.make(gateway, { host: "127.0.0.1", port: 0, ...options }).pipe(
    Scope.provide(scope),
  )
  const [, , gated] = running
  assert(gated !== undefined)
  return {
    port,
    gateway,
    started,
    gated: gated.description.statistics,
    pending: gated.life.pending,
    stop: Scope.close(scope, Exit.void),
  }
})

interface HttpReply {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

interface Sent extends RequestOptions {
  readonly body?: string | Uint8Array
  /** Without a length. */
  readonly chunked?: boolean
}

const send = (
  port: number,
  path: string,
  { body, chunked = false, ...options }: Sent = {},
): Effect.Effect<HttpReply, Error> =>
  Effect.callback((resume) => {
    const method = body === undefined ? "GET" : "POST"
    const length = body === undefined || chunked ? {} : { "content-length": Buffer.byteLength(body) }
    const headers = { ...length, ...options.headers }
    const request = httpRequest({ host: "127.0.0.1", port, path, method, ...options, headers }, (response) => {
      const chunks: Array<Buffer> = []
      response.on("data", (chunk: Buffer) => chunks.push(chunk))
      response.on("end", () => {
        resume(
          Effect.succeed({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) }),
        )
      })
    })
    request.on("error", (error) => resume(Effect.fail(error)))
    // With all of it in one go, node:http would announce its length.
    if (chunked) request.flushHeaders()
    request.end(body)
    return Effect.sync(() => request.destroy())
  })

/** Sends bytes as they are and answers with all that comes until the connection closes. */
const raw = (port: number, bytes: string | Uint8Array): Effect.Effect<string> =>
  Effect.callback((resume) => {
    let text = ""
    const socket = connect(port, "127.0.0.1", () => socket.end(bytes))
    socket.on("data", (chunk: Buffer) => (text += chunk.toString("latin1")))
    socket.on("error", () => {})
    socket.on("close", () => resume(Effect.succeed(text)))
  })

/** A connection that stays open until the server closes it. */
const opened = (port: number, bytes: string): Effect.Effect<void> =>
  Effect.callback((resume) => {
    const socket = connect(port, "127.0.0.1", () => socket.write(bytes, () => resume(Effect.void)))
    socket.on("error", () => {})
  })

const json = (response: HttpReply): unknown => JSON.parse(response.body.toString())

const infer = "/v2/models/echo/infer"

const echo = (data: string, shape = "[1,3]") =>
  `{"id":"7","inputs":[{"name":"X","shape":${shape},"datatype":"FP32","data":${data}}]}`

const gatedBody = '{"inputs":[{"name":"X","shape":[1,1],"datatype":"FP32","data":[1]}]}'

describe("routes", () => {
  it.live("health, metadata and readiness", () =>
    Effect.gen(function* () {
      const { port, gateway } = yield* harness()
      for (const path of [
        "/v2/health/live",
        "/v2/health/ready",
        "/v2/models/echo/ready",
        "/v2/models/echo/versions/1/ready",
      ]) {
        const response = yield* send(port, path)
        assert.deepStrictEqual([response.status, response.body.length], [200, 0], path)
      }
      const server = yield* send(port, "/v2")
      assert.deepStrictEqual(json(server), { ...gateway.metadata })
      assert.strictEqual(server.headers["content-type"], "application/json")
      for (const path of ["/v2/models/echo", "/v2/models/ec%68o/versions/1?x=y"]) {
        const text = (yield* send(port, path)).body.toString()
        const tensor = (name: string) => `[{"name":"${name}","datatype":"FP32","shape":[-1,-1]}]`
        assert.strictEqual(
          text,
          `{"name":"echo","versions":["1"],"platform":"nereid","inputs":${tensor("X")},"outputs":${tensor("Y")},` +
            `"contract":{"inputs":[{"name":"X","dims":["n"]}],"outputs":[{"name":"Y","dims":["n"]}]}}`,
        )
      }
      gateway.beginDrain()
      const ready = yield* send(port, "/v2/health/ready")
      assert.deepStrictEqual([ready.status, json(ready)], [503, { error: "Server exiting" }])
      const model = yield* send(port, "/v2/models/echo/ready")
      assert.deepStrictEqual([model.status, json(model)], [400, { error: "Model version not ready" }])
    }),
  )

  it.live("unknown paths and methods", () =>
    Effect.gen(function* () {
      const { port } = yield* harness()
      for (const path of [
        "/",
        "/v2/",
        "/v2/models",
        "/v2/models/echo/",
        "/v2/models/echo/versions/x",
        "/v2/models/%zz",
      ]) {
        const response = yield* send(port, path)
        assert.deepStrictEqual([response.status, json(response)], [404, { error: "Not Found" }], path)
      }
      for (const [method, path] of [
        ["POST", "/v2"],
        ["DELETE", "/v2/models/echo"],
        ["GET", infer],
        ["POST", "/v2/health/live"],
      ] as const) {
        const response = yield* send(port, path, { method })
        assert.deepStrictEqual([response.status, json(response)], [405, { error: "Method Not Allowed" }], path)
      }
      for (const path of ["/v2/models/nope", "/v2/models/nope/ready", "/v2/models/echo/versions/9"]) {
        const response = yield* send(port, path)
        assert.deepStrictEqual([response.status, response.headers["nereid-error"]], [404, "ModelNotFound"], path)
      }
      const unknown = yield* send(port, "/v2/models/nope/infer", { body: echo("[1,2,3]") })
      assert.deepStrictEqual(json(unknown), { error: "Request for unknown model: 'nope' is not found" })
      const malformed = yield* send(port, "/v2/models/nope/infer", { body: Buffer.from("{") })
      assert.deepStrictEqual([malformed.status, json(malformed)], [404, json(unknown)])
    }),
  )
})

describe("infer", () => {
  it.live("JSON in, JSON out", () =>
    Effect.gen(function* () {
      const { port } = yield* harness()
      const response = yield* send(port, infer, { body: echo("[[1, 0.1, NaN]]") })
      assert.strictEqual(response.status, 200)
      assert.strictEqual(response.headers["content-type"], "application/json")
      assert.strictEqual(
        response.body.toString(),
        '{"id":"7","model_name":"echo","model_version":"1","outputs":' +
          '[{"name":"Y","datatype":"FP32","shape":[1,3],"data":[1,0.1,NaN]}]}',
      )
    }),
  )

  it.live("binary in and out, every kind of tensor, to a model with an awkward name", () =>
    Effect.gen(function* () {
      const { port } = yield* harness()
      const tensor = (name: string, datatype: string, bytes: Uint8Array) => ({ name, datatype, shape: [2], bytes })
      const inputs = [
        tensor("TEXT", "BYTES", Uint8Array.of(1, 0, 0, 0, 255, 0, 0, 0, 0)),
        tensor("LONG", "INT64", new Uint8Array(BigInt64Array.of(2n ** 63n - 1n, -(2n ** 63n)).buffer)),
        tensor("HALF", "FP16", Uint8Array.of(0, 60, 0, 64)),
        tensor("FLAG", "BOOL", Uint8Array.of(1, 0)),
      ]
      const wire = { modelName: "types of all", modelVersion: "", id: "", parameters: {}, inputs, outputs: [] }
      const { headerLength, body } = encodeRequest(wire)
      const headers = { "inference-header-content-length": headerLength }
      const reply = yield* send(port, "/v2/models/types%20of%20all/infer", { body, headers })
      assert.strictEqual(reply.headers["content-type"], "application/octet-stream")
      const length = Number(reply.headers["inference-header-content-length"])
      const response = Result.getOrThrow(decodeResponse(new Uint8Array(reply.body), length))
      assert.deepStrictEqual(response.outputs, inputs)
    }),
  )

  it.live("large tensors, as chunks and as one body, binary and JSON", () =>
    Effect.gen(function* () {
      const { port } = yield* harness()
      const data = Float32Array.from({ length: 300_000 }, (_, index) => index / 7)
      const bytes = new Uint8Array(data.buffer)
      const inputs = [{ name: "X", datatype: "FP32", shape: [2, 150_000], bytes }]
      const wire = { modelName: "echo", modelVersion: "1", id: "", parameters: {}, inputs, outputs: [] }
      const binary = encodeRequest(wire)
      const text = echo(`[${data.join()}]`, "[2,150000]")
      for (const [body, headerLength] of [[binary.body, binary.headerLength] as const, [text, undefined] as const]) {
        for (const chunked of [false, true]) {
          const headers = headerLength === undefined ? {} : { "inference-header-content-length": headerLength }
          const reply = yield* send(port, "/v2/models/echo/versions/1/infer", { body, headers, chunked })
          assert.strictEqual(reply.status, 200)
          const length = reply.headers["inference-header-content-length"]
          const response = decodeResponse(reply.body, length === undefined ? undefined : Number(length))
          const [output] = Result.getOrThrow(response).outputs
          assert(output !== undefined && Buffer.compare(output.bytes, bytes) === 0)
        }
      }
    }),
  )

  it.live("an invalid request gets its status and tag", () =>
    Effect.gen(function* () {
      const { port } = yield* harness()
      const cases: ReadonlyArray<readonly [Sent, number, string | undefined, string]> = [
        [{ body: "{" }, 400, "MalformedRequest", "failed to parse the request JSON buffer: Missing a name for object"],
        [{ body: "" }, 400, "MalformedRequest", "failed to parse the request JSON buffer: The document is empty. at 0"],
        [
          { body: echo("[1,2]") },
          400,
          "MalformedRequest",
          "Failed to parse 'data' field: shape does not match true shape",
        ],
        [{ body: echo("[1]", "[9,0]") }, 400, "MalformedRequest", "Unable to parse 'data': Shape does not match"],
        [
          { body: echo("[]", "[9,0]") },
          400,
          "InvalidRequest",
          "[request id: 7] inference request batch-size must be <= 8",
        ],
        [
          { body: echo("[1,2,3]").replace("]}", ']},{"name":"X","shape":[1,1],"datatype":"FP32","data":[1]}') },
          400,
          "InvalidRequest",
          "[request id: 7] input 'X' already exists in request",
        ],
        [
          { body: "{}", headers: { "inference-header-content-length": "x" } },
          400,
          "InvalidRequest",
          "Unable to parse Inference-Header-Content-Length, ",
        ],
        [
          { body: "{}", headers: { "inference-header-content-length": "3" } },
          400,
          "InvalidRequest",
          "inference header size should be in range (0, 2), got: 3",
        ],
        [
          { body: "{}", headers: { "nereid-timeout-ms": "soon" } },
          400,
          "InvalidRequest",
          "nereid-timeout-ms must be a",
        ],
        [{ body: "{}", headers: { "content-encoding": "br" } }, 415, undefined, "Unsupported compression type"],
      ]
      for (const [sent, status, tag, text] of cases) {
        const response = yield* send(port, infer, sent)
        const body = response.body.toString()
        assert.deepStrictEqual([response.status, response.headers["nereid-error"]], [status, tag], body)
        assert.include(body, JSON.stringify({ error: text }).slice(0, -2))
        assert.strictEqual(response.headers["content-type"], "application/json")
      }
      assert.strictEqual((yield* send(port, infer, { body: echo("[1,2,3]") })).status, 200)
    }),
  )

  it.live("an FP16 output has no JSON form", () =>
    Effect.gen(function* () {
      const { port } = yield* harness()
      const input = (name: string, datatype: string, data: string) =>
        `{"name":"${name}","datatype":"${datatype}","shape":[1],${data}}`
      const document = Buffer.from(
        `{"inputs":[${input("TEXT", "BYTES", '"data":["a"]')},${input("LONG", "INT64", '"data":[1]')},` +
          `${input("HALF", "FP16", '"parameters":{"binary_data_size":2}')},${input("FLAG", "BOOL", '"data":[true]')}]}`,
      )
      const response = yield* send(port, "/v2/models/types%20of%20all/infer", {
        body: Buffer.concat([document, Uint8Array.of(0, 60)]),
        headers: { "inference-header-content-length": document.length },
      })
      const error = "sending FP16 data via JSON is not supported. Please use the binary data format for output HALF"
      assert.deepStrictEqual([response.status, json(response)], [400, { error }])
    }),
  )

  it.live("many requests on one connection", () =>
    Effect.gen(function* () {
      const { port } = yield* harness()
      const agent = new Agent({ keepAlive: true, maxSockets: 1 })
      yield* Effect.addFinalizer(() => Effect.sync(() => agent.destroy()))
      for (let index = 0; index < 20; index++) {
        const response = yield* send(port, infer, { body: echo(index % 2 === 0 ? "[1,2,3]" : "[1"), agent })
        assert.strictEqual(response.status, index % 2 === 0 ? 200 : 400)
        assert.strictEqual(response.headers.connection, "keep-alive")
      }
    }),
  )
})

describe("limits", () => {
  it.live("a body beyond the limit is refused by its announced length, and by what came", () =>
    Effect.gen(function* () {
      const { port } = yield* harness({ maxInputSize: 1000 })
      const error = (size: number) =>
        `request JSON size of ${size} bytes exceeds the maximum allowed input size of 1000 bytes. ` +
        "Use --http-max-input-size to increase the limit."
      const large = yield* send(port, infer, { body: " ".repeat(5_000_000) })
      assert.deepStrictEqual([large.status, json(large)], [400, { error: error(5_000_000) }])
      assert.deepStrictEqual([large.headers.connection, large.headers["nereid-error"]], ["close", "InvalidRequest"])
      const chunked = yield* send(port, infer, { body: " ".repeat(1001), chunked: true })
      assert.deepStrictEqual([chunked.status, json(chunked)], [400, { error: error(1001) }])
      const body = echo("[1,2,3]").padEnd(1000)
      for (const sent of [{ body }, { body, chunked: true }])
        assert.strictEqual((yield* send(port, infer, sent)).status, 200)
    }),
  )

  it.live("a raw body beyond the limit is refused as what it is", () =>
    Effect.gen(function* () {
      const { port } = yield* harness({ maxInputSize: 1000 })
      const headers = { "inference-header-content-length": "0" }
      const limited =
        "exceeds the maximum allowed value of 1000 bytes. Use --http-max-input-size to increase the limit."
      const large = yield* send(port, infer, { body: new Uint8Array(1004), headers })
      const error = `Raw input has a byte_size (1004 bytes) that ${limited}`
      assert.deepStrictEqual([large.status, json(large)], [400, { error }])
      const packed = { body: gzipSync(new Uint8Array(1004)), headers: { ...headers, "content-encoding": "gzip" } }
      const inflated = yield* send(port, infer, packed)
      assert.deepStrictEqual(
        [inflated.status, json(inflated)],
        [400, { error: `decompressed request size ${limited}` }],
      )
      assert.strictEqual((yield* send(port, infer, { body: new Uint8Array(1000), headers })).status, 200)
    }),
  )

  it.live("a chunked body comes in at most 65,536 pieces", () =>
    Effect.gen(function* () {
      const { port } = yield* harness()
      const inChunks = (count: number) => {
        const text = echo("[1,2,3]").padEnd(count)
        let body = ""
        for (const byte of text) body += `1\r\n${byte}\r\n`
        return raw(port, `POST ${infer} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n${body}0\r\n\r\n`)
      }
      assert.match(yield* inChunks(65_536), /^HTTP\/1.1 200 OK/)
      const refused = yield* inChunks(65_537)
      assert.match(refused, /^HTTP\/1.1 400 Bad Request\r\n.*connection: close/s)
      assert.include(
        refused,
        '{"error":"Chunked request body exceeds maximum of 65536 non-empty chunks. Send fewer or larger HTTP chunks."}',
      )
    }),
  )

  it.live("the refusal does not wait for the body", () =>
    Effect.gen(function* () {
      const { port } = yield* harness({ maxInputSize: 1000 })
      const head = `POST ${infer} HTTP/1.1\r\nhost: x\r\ncontent-length: 2000\r\n`
      const expecting = yield* raw(port, `${head}expect: 100-continue\r\n\r\n`)
      assert.match(expecting, /^HTTP\/1.1 400 Bad Request/)
      const response = yield* Effect.callback<string>((resume) => {
        const socket = connect(port, "127.0.0.1", () => socket.write(`${head}\r\n`))
        socket.once("data", (chunk: Buffer) => {
          resume(Effect.succeed(chunk.toString()))
          socket.destroy()
        })
      })
      assert.include(response, "request JSON size of 2000 bytes exceeds")
    }),
  )

  it.live("answers Expect: 100-continue", () =>
    Effect.gen(function* () {
      const { port } = yield* harness()
      const body = echo("[1,2,3]")
      const head = `POST ${infer} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: ${body.length}\r\n`
      const response = yield* raw(port, `${head}expect: 100-continue\r\n\r\n${body}`)
      assert.match(response, /^HTTP\/1.1 100 Continue\r\n\r\nHTTP\/1.1 200 OK\r\n/)
    }),
  )
})

describe("broken and vanishing callers", () => {
  it.live("bytes that are not HTTP get a 400", () =>
    Effect.gen(function* () {
      const { port } = yield* harness()
      const response = yield* raw(port, "\u0000\u0001 nonsense\r\n\r\n")
      assert.match(response, /^HTTP\/1.1 400 Bad Request\r\ncontent-type: application\/json/)
      assert.include(yield* raw(port, `GET /v2 HTTP/1.1\r\nx: ${"y".repeat(100_000)}\r\n\r\n`), "HTTP/1.1 431 ")
      assert.strictEqual((yield* send(port, "/v2")).status, 200)
    }),
  )

  it.live("truncated and mutated bodies never stop the server", () =>
    Effect.gen(function* () {
      const { port } = yield* harness()
      const text = echo("[[1,-2.5e3,NaN]]")
      const mutated = fc
        .array(fc.record({ at: fc.nat(text.length - 1), byte: fc.nat(255) }), { maxLength: 3 })
        .map((mutations) => {
          const body = Buffer.from(text)
          for (const { at, byte } of mutations) body[at] = byte
          return body
        })
      for (const body of fc.sample(mutated, { numRuns: 200, seed: 1 })) {
        const { status } = yield* send(port, infer, { body })
        assert.include([200, 400, 500], status, body.toString("latin1"))
      }
      for (const length of [1, 20, text.length - 1]) {
        const head = `POST ${infer} HTTP/1.1\r\nhost: x\r\ncontent-length: ${text.length}\r\n\r\n`
        yield* raw(port, head + text.slice(0, length))
      }
      yield* raw(port, `POST ${infer} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n`)
      assert.strictEqual((yield* send(port, infer, { body: text })).status, 200)
    }),
  )

  it.live("a body that is not as long as announced", () =>
    Effect.gen(function* () {
      const { port } = yield* harness()
      const body = echo("[1,2,3]")
      const announced = (length: number | undefined) => {
        const field = length === undefined ? "" : `content-length: ${length}\r\n`
        return raw(port, `POST ${infer} HTTP/1.1\r\nhost: x\r\n${field}\r\n${body}`)
      }
      assert.match(yield* announced(body.length - 1), /^HTTP\/1.1 400 .*Missing a comma or } after an object member/s)
      // The server waits for the missing bytes until the client closes.
      assert.match(yield* announced(body.length + 1), /^HTTP\/1.1 400 .*malformed HTTP/s)
      assert.match(yield* announced(undefined), /^HTTP\/1.1 400 .*The document is empty\. at 0/s)
      assert.strictEqual((yield* send(port, infer, { body })).status, 200)
    }),
  )

  it.live("a caller that goes away takes its queued request back", () =>
    Effect.gen(function* () {
      const { port, started, gated, pending } = yield* harness()
      const path = "/v2/models/gated/infer"
      const first = yield* Effect.forkChild(send(port, path, { body: gatedBody }))
      const gate = yield* Queue.take(started)
      const second = yield* Effect.forkChild(send(port, path, { body: gatedBody }))
      yield* until(() => pending() === 1)
      yield* Fiber.interrupt(second)
      yield* until(() => gated.failures.CANCELED === 1)
      assert.strictEqual(pending(), 0)
      yield* Deferred.succeed(gate, undefined)
      assert.strictEqual((yield* Fiber.join(first)).status, 200)
      assert.strictEqual(gated.executionCount, 1)
    }),
  )

  it.live("drops the response of a closed connection", () =>
    Effect.gen(function* () {
      const { port, started, gated } = yield* harness()
      const request = yield* Effect.forkChild(send(port, "/v2/models/gated/infer", { body: gatedBody }))
      const gate = yield* Queue.take(started)
      yield* Fiber.interrupt(request)
      yield* Deferred.succeed(gate, undefined)
      yield* until(() => gated.executionCount + gated.failures.CANCELED > 0)
      assert.strictEqual((yield* send(port, infer, { body: echo("[1,2,3]") })).status, 200)
    }),
  )

  it.live("a deadline that passes in the queue is answered", () =>
    Effect.gen(function* () {
      const { port, started } = yield* harness()
      const path = "/v2/models/gated/infer"
      const first = yield* Effect.forkChild(send(port, path, { body: gatedBody }))
      const gate = yield* Queue.take(started)
      const late = yield* send(port, path, { body: gatedBody, headers: { "nereid-timeout-ms": "1" } })
      assert.deepStrictEqual([late.status, late.headers["nereid-error"]], [503, "DeadlineExceeded"])
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(first)
    }),
  )

  const logged: Array<unknown> = []
  it.live("a defect is one answer and a line of the log, not the end", () =>
    Effect.gen(function* () {
      const { gateway } = yield* harness()
      const broken: Gateway.Gateway = {
        ...gateway,
        infer: () => {
          throw new Error("a bug of this test")
        },
        modelMetadata: () => {
          throw new Error("a bug of this test")
        },
      }
      const { port } = yield* HttpServer.make(broken, { host: "127.0.0.1", port: 0 })
      for (const sent of [send(port, infer, { body: echo("[1,2,3]") }), send(port, "/v2/models/echo")]) {
        const response = yield* sent
        assert.deepStrictEqual([response.status, json(response)], [500, { error: "internal error" }])
      }
      assert.strictEqual((yield* send(port, "/v2/health/live")).status, 200)
      assert.deepStrictEqual(logged, [
        `The HTTP front end failed on POST ${infer}`,
        "The HTTP front end failed on GET /v2/models/echo",
      ])
    }).pipe(Effect.provide(Logger.layer([Logger.make(({ message }) => logged.push([message].flat(2)[0]))]))),
  )
})

describe("start and stop", () => {
  it.live("a stop lets answers in flight finish, and closes idle connections at once", () =>
    Effect.gen(function* () {
      const { port, started, stop } = yield* harness()
      const agent = new Agent({ keepAlive: true })
      yield* Effect.addFinalizer(() => Effect.sync(() => agent.destroy()))
      yield* send(port, "/v2", { agent })
      // An idle connection, and one in the middle of its headers.
      for (const sent of ["", "GET /v2 HTTP/1.1\r\n"]) yield* opened(port, sent)
      const waiting = yield* Effect.forkChild(send(port, "/v2/models/gated/infer", { body: gatedBody, agent }))
      const gate = yield* Queue.take(started)
      const stopped = yield* Latch.make()
      const stopping = yield* Effect.forkChild(Effect.andThen(stop, stopped.open))
      // On new connections: those of the global agent stay open while they have requests.
      yield* Effect.flip(Effect.repeat(send(port, "/v2", { agent: false }), { while: () => true }))
      assert.strictEqual(stopping.pollUnsafe(), undefined)
      yield* Deferred.succeed(gate, undefined)
      const response = yield* Fiber.join(waiting)
      assert.deepStrictEqual([response.status, response.headers.connection], [200, "keep-alive"])
      yield* stopped.await
    }),
  )

  it.live.each([Infinity, 2 ** 31])("a stop that may take %d ms cuts nothing off", (stopTimeoutMillis) =>
    Effect.gen(function* () {
      const { port, started, stop } = yield* harness({ stopTimeoutMillis })
      const waiting = yield* Effect.forkChild(send(port, "/v2/models/gated/infer", { body: gatedBody }))
      const gate = yield* Queue.take(started)
      const stopping = yield* Effect.forkChild(stop, { startImmediately: true })
      // Timers fire in their order, and too long ones after 1 ms.
      yield* Effect.sleep(5)
      yield* Deferred.succeed(gate, undefined)
      assert.strictEqual((yield* Fiber.join(waiting)).status, 200)
      yield* Fiber.join(stopping)
    }),
  )

  it.live("a stop cuts off what takes too long", () =>
    Effect.gen(function* () {
      const { port, started, stop } = yield* harness({ stopTimeoutMillis: 1 })
      const waiting = yield* Effect.forkChild(send(port, "/v2/models/gated/infer", { body: gatedBody }))
      yield* Queue.take(started)
      yield* stop
      assert(Exit.isFailure(yield* Fiber.await(waiting)))
    }),
  )

  it.live("a port that is taken is a ServeError", () =>
    Effect.gen(function* () {
      const { port, gateway } = yield* harness()
      for (const make of [HttpServer.make, MetricsServer.make]) {
        const error = yield* Effect.flip(make(gateway, { host: "127.0.0.1", port }))
        assert.strictEqual(error._tag, "ServeError")
        assert.match(error.message, new RegExp(`^cannot listen for (HTTP|metrics) on 127.0.0.1:${port}: .*EADDRINUSE`))
      }
    }),
  )
})

/** Waits for the server's side of a socket, on which the test has no other handle. */
const until = (condition: () => boolean): Effect.Effect<void> =>
  Effect.suspend(() => (condition() ? Effect.void : Effect.andThen(turn, until(condition))))

const turn = Effect.callback<void>((resume) => {
  setImmediate(() => resume(Effect.void))
})
