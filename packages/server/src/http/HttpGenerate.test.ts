/**
 * The generate extension over real sockets (C30, C31), with clients that read, stop reading, send errors or disconnect.
 */
import { ModelStore } from "@nereid/core/internal/lifecycle/ModelStore"
import { Agent, type IncomingMessage, type OutgoingHttpHeaders, request as httpRequest } from "node:http"
import { connect } from "node:net"
import { assert, describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Layer, Queue, Scope, Stream } from "effect"
import { Model, RequestContext, Tensor } from "@nereid/core"
import * as Gateway from "../gateway/Gateway.ts"
import { inferModel, json } from "./HttpInfer.fixture.ts"
import * as HttpServer from "./HttpServer.ts"

/** Model that responds once, with its request and the context of its handler. */
class Mirror extends Model.Service<Mirror>()("mirror", {
  inputs: { TEXT: Tensor.utf8(), NUMBERS: Tensor.optional(Tensor.INT64("n")), HALF: Tensor.optional(Tensor.FP16(1)) },
  outputs: { TEXT: Tensor.utf8(), NUMBERS: Tensor.INT64("n"), CONTEXT: Tensor.utf8() },
  maxBatchSize: 4,
}) {}

/**
 * Model that responds to each word of its text, with the word's index as a parameter. "fail" fails, "never" does not
 * respond, "gate" waits for the test, and "binary" is not text.
 */
class Words extends Model.Service<Words>()("words", {
  inputs: { TEXT: Tensor.utf8() },
  outputs: { WORD: Tensor.BYTES(1) },
  maxBatchSize: 128,
}) {}

/** Tens of kilobytes at a time, without end. */
class Bulk extends Model.Service<Bulk>()("bulk", {
  inputs: { X: Tensor.scalar("INT32") },
  outputs: { Y: Tensor.UINT8(2 ** 15) },
  maxBatchSize: 4,
}) {}

/** One request at a time, and one that waits. */
class Narrow extends Model.Service<Narrow>()("narrow", {
  inputs: { TEXT: Tensor.utf8() },
  outputs: { TEXT: Tensor.utf8() },
  batching: { maxQueueSize: 1 },
}) {}

const harness = Effect.fnUntraced(function* (options: Partial<HttpServer.HttpServerOptions> = {}) {
  const gate = yield* Deferred.make<void>()
  const waiting = yield* Queue.unbounded<void>()
  const interrupted = yield* Queue.unbounded<string>()
  const produced = { count: 0 }
  const word = (text: string) =>
    Effect.gen(function* () {
      if (text === "fail") return yield* Effect.fail(new Error("no such word"))
      if (text === "never") {
        yield* Queue.offer(waiting, undefined)
        return yield* Effect.never.pipe(Effect.onInterrupt(() => Queue.offer(interrupted, text)))
      }
      if (text === "gate") yield* Deferred.await(gate)
      const bytes = text === "binary" ? Uint8Array.of(0xff) : Buffer.from(text)
      return { WORD: Tensor.make("BYTES", [1], [bytes]) }
    })
  const layers = Layer.mergeAll(
    Model.each(Mirror, ({ TEXT, NUMBERS }) =>
      Effect.gen(function* () {
        const { id, parameters, setParameter } = yield* RequestContext
        if (TEXT === "fail") return yield* Effect.fail(new Error("no such word"))
        yield* setParameter("length", BigInt(TEXT.length))
        const context = JSON.stringify({ id, parameters }, (_, value: unknown) =>
          typeof value === "bigint" ? `${value}n` : value,
        )
        return { TEXT, NUMBERS: NUMBERS ?? Tensor.make("INT64", [0], new BigInt64Array()), CONTEXT: context }
      }),
    ),
    Model.stream(Words, ({ TEXT }) =>
      Stream.fromIterable(TEXT.split(" ").filter((text) => text !== "")).pipe(
        Stream.zipWithIndex,
        Stream.mapEffect(([text, index]) =>
          Effect.gen(function* () {
            const { setParameter } = yield* RequestContext
            const response = yield* word(text)
            yield* setParameter("index", BigInt(index))
            return response
          }),
        ),
      ),
    ),
    Model.stream(Narrow, (sample) =>
      Stream.fromEffect(Effect.as(Effect.andThen(Queue.offer(waiting, undefined), Deferred.await(gate)), sample)),
    ),
    Model.stream(Bulk, () =>
      Stream.fromEffectRepeat(
        Effect.sync(() => {
          produced.count += 1
          return { Y: Tensor.make("UINT8", [2 ** 15], new Uint8Array(2 ** 15)) }
        }),
      ).pipe(Stream.ensuring(Queue.offer(interrupted, "bulk"))),
    ),
  )
  const services = yield* Effect.all([Mirror, Words, Narrow, Bulk]).pipe(Effect.provide(yield* Layer.build(layers)))
  const gateway = Gateway.make(ModelStore.of(services.map(({ model }) => model)), { id: "nereid", version: "0" })
  const scope = yield* Scope.fork(yield* Scope.Scope)
  const { port } = yield* HttpServer.make(gateway, { host: "127.0.0.1", port: 0, ...options }).pipe(
    Scope.provide(scope),
  )
  const drain = Effect.sync(() => gateway.beginDrain())
  const stop = drain.pipe(Effect.andThen(Scope.close(scope, Exit.void)))
  const [, words, narrow] = services
  return { port, gate, waiting, interrupted, produced, stop, words: words.model, narrow: narrow.model }
})

const generate = (server: { readonly port: number }, model: string, body: string, headers?: OutgoingHttpHeaders) =>
  inferModel(server, model, body, headers, "generate")

const generateStream = (
  server: { readonly port: number },
  model: string,
  body: string,
  headers?: OutgoingHttpHeaders,
) => inferModel(server, model, body, headers, "generate_stream")

/** A stream whose caller decides when to read. */
const open = (
  server: { readonly port: number },
  text: string,
  options: { readonly model?: string; readonly route?: string; readonly body?: string; readonly agent?: Agent } = {},
) =>
  Effect.callback<IncomingMessage>((resume) => {
    const { model = "words", route = "generate_stream", body = JSON.stringify({ TEXT: text }), agent } = options
    const path = `/v2/models/${model}/${route}`
    const request = httpRequest(
      { host: "127.0.0.1", port: server.port, path, method: "POST", ...(agent && { agent }) },
      (response) => {
        response.on("error", () => {})
        resume(Effect.succeed(response))
      },
    )
    request.on("error", () => {})
    request.end(body)
  })

/** Waits for the next chunk of a response. */
const chunk = (response: IncomingMessage) =>
  Effect.callback<string>((resume) => {
    response.once("data", (data: Buffer) => {
      response.pause()
      resume(Effect.succeed(data.toString()))
    })
    response.resume()
  })

const rest = (response: IncomingMessage) =>
  Effect.callback<string>((resume) => {
    let text = ""
    response.on("data", (data: Buffer) => (text += data.toString()))
    response.on("end", () => resume(Effect.succeed(text)))
    response.resume()
  })

const event = (word: string, index: number, id = "") =>
  `data: {${id}"model_name":"words","model_version":"1","WORD":"${word}","index":${index}}\n\n`

const sse = "text/event-stream; charset=utf-8"

const exactlyOne =
  "generate expects model to produce exactly 1 response, use generate stream for model that generates various number of responses"

describe("generate", () => {
  it.live("C30: one flat object in, one out: inputs, id, parameters on their way and back", () =>
    Effect.gen(function* () {
      const server = yield* harness()
      const body = '{"TEXT":"hey","NUMBERS":[9223372036854775807,-1],"top":1,"id":"7","parameters":{"half":0.5}}'
      for (const [model, headers] of [
        ["mirror", {}],
        ["mirror/versions/1", { "content-type": "application/x-www-form-urlencoded", "content-encoding": "identity" }],
      ] as const) {
        const response = yield* generate(server, model, body, headers)
        assert.deepStrictEqual([response.status, response.headers["content-type"]], [200, "application/json"])
        const context = JSON.stringify(JSON.stringify({ id: "7", parameters: { top: "1n", half: 0.5 } }))
        assert.strictEqual(
          response.body.toString(),
          '{"id":"7","model_name":"mirror","model_version":"1","TEXT":"hey",' +
            `"NUMBERS":[9223372036854775807,-1],"CONTEXT":${context},"length":3}`,
        )
      }
      const scalars = yield* generate(server, "mirror", '{"TEXT":["x"],"NUMBERS":5}')
      expect(json(scalars)).toMatchObject({ TEXT: "x", NUMBERS: 5 })
      expect(json(yield* generate(server, "mirror", '{"TEXT":"x"}'))).toMatchObject({ TEXT: "x", NUMBERS: [] })
    }),
  )

  it.live("C30: of a decoupled model, exactly one response; a second one ends the request", () =>
    Effect.gen(function* () {
      const server = yield* harness()
      const { status, body } = yield* generate(server, "words", '{"TEXT":"only","id":"7"}')
      assert.deepStrictEqual(
        [status, body.toString()],
        [200, '{"id":"7","model_name":"words","model_version":"1","WORD":"only","index":0}'],
      )
      for (const text of ["", "a b", "a b never"]) {
        const response = yield* generate(server, "words", JSON.stringify({ TEXT: text }))
        assert.deepStrictEqual([response.status, json(response)], [501, { error: exactlyOne }], text)
        assert.strictEqual(response.headers["nereid-error"], "Unsupported")
      }
      assert.strictEqual(server.words.life.pending(), 0)
      const failed = yield* generate(server, "words", '{"TEXT":"a fail"}')
      expect([failed.status, json(failed)]).toEqual([
        500,
        { error: "Failed to process the request(s) for model 'words_0', message: no such word" },
      ])
      assert.strictEqual(server.words.description.statistics.failures.CANCELED, 2)
    }),
  )

  it.live("an invalid request gets its status and a message", () =>
    Effect.gen(function* () {
      const server = yield* harness({ maxInputSize: 1000 })
      const prefix = "[request id: <id_unknown>] "
      const cases = [
        ["mirror", "{", 400, "failed to parse the request JSON buffer: Missing a name for object member. at 1"],
        ["mirror", "", 400, "failed to parse the request JSON buffer: The document is empty. at 0"],
        ["nope", "{", 404, "Request for unknown model: 'nope' is not found"],
        ["words/versions/2", "{}", 404, "Request for unknown model: 'words' version 2 is not found"],
        ["mirror", '{"TEXT":"a","TEXT":"b"}', 400, `${prefix}input 'TEXT' already exists in request`],
        ["mirror", '{"TEXT":"a","id":"7","TEXT":"b"}', 400, "[request id: 7] input 'TEXT' already exists in request"],
        [
          "mirror",
          '{"TEXT":[["a"],["b","c"]]}',
          400,
          "The schema can not convert input 'TEXT' to tensor with proper shape",
        ],
        ["mirror", '{"parameters":1}', 400, "Expected JSON object for keyword: 'parameters'"],
        [
          "mirror",
          '{"parameters":{"nested":{}}}',
          400,
          "Converting keyword: 'parameters': parameter 'nested' has invalid type. " +
            "It should be either 'int', 'bool', or 'string'.",
        ],
        [
          "mirror",
          '{"TEXT":"a","HALF":1}',
          400,
          "receiving FP16 data via JSON is not supported. Please use the binary data format for input HALF",
        ],
        [
          "words",
          '{"text":"a"}',
          400,
          `${prefix}expected 1 inputs but got 0 inputs for model 'words'. Got input(s) [], ` +
            "but missing required input(s) ['TEXT']. Please provide all required input(s).",
        ],
        [
          "mirror",
          '{"TEXT":["a","b","c","d","e"]}',
          400,
          `${prefix}inference request batch-size must be <= 4 for 'mirror'`,
        ],
        [
          "words",
          `{"TEXT":"${"x".repeat(1000)}"}`,
          400,
          "request JSON size of 1011 bytes exceeds the maximum allowed input size of 1000 bytes. " +
            "Use --http-max-input-size to increase the limit.",
        ],
      ] as const
      for (const route of [generate, generateStream]) {
        for (const [model, body, status, error] of cases) {
          const response = yield* route(server, model, body)
          assert.deepStrictEqual([response.status, json(response)], [status, { error }], body)
          assert.strictEqual(response.headers["content-type"], "application/json")
        }
        for (const encoding of ["gzip", "deflate", "br", "gzip, deflate"]) {
          const response = yield* route(server, "words", "{}", { "content-encoding": encoding })
          assert.deepStrictEqual(
            [response.status, json(response)],
            [400, { error: "Unsupported content-encoding, only 'identity' is supported." }],
          )
        }
        const late = yield* route(server, "words", '{"TEXT":"a"}', { "nereid-timeout-ms": "soon" })
        assert.strictEqual(late.status, 400)
      }
      for (const route of ["generate", "generate_stream"]) {
        const wrong = yield* Effect.promise(() => fetch(`http://127.0.0.1:${server.port}/v2/models/words/${route}`))
        assert.deepStrictEqual(
          [wrong.status, yield* Effect.promise(() => wrong.json())],
          [405, { error: "Method Not Allowed" }],
        )
      }
    }),
  )

  it.live("headers that are forwarded reach the model", () =>
    Effect.gen(function* () {
      const server = yield* harness({ forwardHeaders: "^x-" })
      const response = yield* generate(server, "mirror", '{"TEXT":"a","x-user":"me"}', { "X-User": "you" })
      expect(json(response)).toMatchObject({ CONTEXT: '{"id":"","parameters":{"x-user":"you"}}' })
      const reserved = yield* harness({ forwardHeaders: "timeout" })
      for (const route of [generate, generateStream]) {
        const refused = yield* route(reserved, "mirror", '{"TEXT":"a"}', { timeout: "5" })
        expect([refused.status, json(refused)]).toEqual([
          400,
          { error: "Header 'timeout' is reserved for Triton usage and cannot be forwarded." },
        ])
      }
    }),
  )
})

describe("generate_stream", () => {
  it.live("C31: each response is an event, of decoupled and other models", () =>
    Effect.gen(function* () {
      const server = yield* harness()
      const response = yield* generateStream(server, "words", '{"TEXT":"a b naïve","id":"7"}')
      assert.deepStrictEqual([response.status, response.headers["content-type"]], [200, sse])
      const id = '"id":"7",'
      assert.strictEqual(response.body.toString(), event("a", 0, id) + event("b", 1, id) + event("naïve", 2, id))
      const none = yield* generateStream(server, "words", '{"TEXT":""}')
      assert.deepStrictEqual([none.status, none.headers["content-type"], none.body.length], [200, sse, 0])
      const once = yield* generateStream(server, "mirror", '{"TEXT":"a\\nb"}')
      const [, text = ""] = /^data: (\{[^\n]*\})\n\n$/.exec(once.body.toString()) ?? []
      expect(JSON.parse(text)).toMatchObject({ TEXT: "a\nb", length: 3 })
      assert.deepStrictEqual([once.status, once.headers["content-type"]], [200, sse])
    }),
  )

  it.live("C31: an event is sent before the next one is there", () =>
    Effect.gen(function* () {
      const server = yield* harness()
      const response = yield* open(server, "a gate b")
      assert.strictEqual(yield* chunk(response), event("a", 0))
      yield* Deferred.succeed(server.gate, undefined)
      assert.strictEqual(yield* rest(response), event("gate", 1) + event("b", 2))
    }),
  )

  it.live("C31: the events of one turn are one chunk", () =>
    Effect.gen(function* () {
      const server = yield* harness()
      const text = yield* Effect.callback<string>((resume) => {
        let received = ""
        const socket = connect(server.port, "127.0.0.1", () =>
          socket.write(
            "POST /v2/models/words/generate_stream HTTP/1.1\r\nhost: x\r\nconnection: close\r\n" +
              'content-length: 16\r\n\r\n{"TEXT":"a b c"}',
          ),
        )
        socket.on("data", (data: Buffer) => (received += data.toString()))
        socket.on("close", () => resume(Effect.succeed(received)))
      })
      const body = event("a", 0) + event("b", 1) + event("c", 2)
      assert.strictEqual(
        text.split("\r\n\r\n").slice(1).join("\r\n\r\n"),
        `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
      )
    }),
  )

  it.live("C31: a failure as the first response has its status, a later one is an event", () =>
    Effect.gen(function* () {
      const server = yield* harness()
      const message = "Failed to process the request(s) for model 'words_0', message: no such word"
      const failure = `data: ${JSON.stringify({ error: message })}\n\n`
      const first = yield* generateStream(server, "words", '{"TEXT":"fail a"}')
      assert.deepStrictEqual([first.status, first.headers["content-type"]], [500, sse])
      assert.deepStrictEqual([first.body.toString(), first.headers["nereid-error"]], [failure, "ExecutionFailed"])
      const later = yield* generateStream(server, "words", '{"TEXT":"a fail b"}')
      assert.deepStrictEqual([later.status, later.headers["content-type"]], [200, sse])
      assert.strictEqual(later.body.toString(), event("a", 0) + failure)
      const once = yield* generateStream(server, "mirror", '{"TEXT":"fail"}')
      assert.deepStrictEqual([once.status, once.body.toString()], [500, failure.replace("words", "mirror")])
    }),
  )

  it.live("a request that the queue refuses gets its status, as JSON", () =>
    Effect.gen(function* () {
      const server = yield* harness()
      const infer = generateStream(server, "narrow", '{"TEXT":"a"}')
      const running = yield* Effect.forkChild(infer)
      yield* Queue.take(server.waiting)
      const queued = yield* Effect.forkChild(infer)
      while (server.narrow.life.pending() === 0) yield* Effect.promise(() => new Promise((turn) => setImmediate(turn)))
      const refused = yield* infer
      assert.deepStrictEqual([refused.status, refused.headers["content-type"]], [503, "application/json"])
      expect(json(refused)).toEqual({ error: "[request id: <id_unknown>] Exceeds maximum queue size" })
      yield* Deferred.succeed(server.gate, undefined)
      const responses = yield* Effect.all([Fiber.join(running), Fiber.join(queued)])
      assert.deepStrictEqual(
        responses.map(({ status }) => status),
        [200, 200],
      )
    }),
  )

  it.live("a response without a JSON form is a failure, and ends the request", () =>
    Effect.gen(function* () {
      const server = yield* harness()
      const text = "element 0 of output 'WORD' is not UTF-8 text and cannot be sent as JSON."
      const first = yield* generateStream(server, "words", '{"TEXT":"binary never"}')
      assert.deepStrictEqual([first.status, first.headers["content-type"]], [400, sse])
      expect(first.body.toString()).toContain(`data: {"error":"${text}`)
      const later = yield* generateStream(server, "words", '{"TEXT":"a binary never"}')
      assert.strictEqual(later.status, 200)
      expect(later.body.toString()).toContain(`${event("a", 0)}data: {"error":"${text}`)
      const only = yield* generate(server, "words", '{"TEXT":"binary"}')
      assert.deepStrictEqual([only.status, only.headers["nereid-error"]], [400, "InvalidRequest"])
    }),
  )

  it.live("a deadline that passes ends it", () =>
    Effect.gen(function* () {
      const server = yield* harness()
      // Long enough for the first response, on a machine that is busy too.
      const response = yield* generateStream(server, "words", '{"TEXT":"a never"}', { "nereid-timeout-ms": "400" })
      const failure = 'data: {"error":"[request id: <id_unknown>] Deadline Exceeded"}\n\n'
      assert.deepStrictEqual([response.status, response.body.toString()], [200, event("a", 0) + failure])
      assert.strictEqual(yield* Queue.take(server.interrupted), "never")
    }),
  )

  it.live("C28: a caller that leaves takes its request back, streamed or not", () =>
    Effect.gen(function* () {
      const server = yield* harness()
      const response = yield* open(server, "a never")
      assert.strictEqual(yield* chunk(response), event("a", 0))
      response.destroy()
      assert.strictEqual(yield* Queue.take(server.interrupted), "never")
      yield* Queue.take(server.waiting)
      for (const route of [generate, generateStream]) {
        const pending = yield* Effect.forkChild(route(server, "words", '{"TEXT":"never"}'))
        yield* Queue.take(server.waiting)
        yield* Fiber.interrupt(pending)
        assert.strictEqual(yield* Queue.take(server.interrupted), "never")
      }
      assert.deepStrictEqual(
        [server.words.description.statistics.failures.CANCELED, server.words.life.pending()],
        [3, 0],
      )
    }),
  )

  it.live("a reader that stops slows a model without end; it goes on when it reads, and ends when it leaves", () =>
    Effect.gen(function* () {
      const server = yield* harness()
      const response = yield* open(server, "", { model: "bulk", body: '{"X":1}' })
      yield* chunk(response)
      // Once buffers are full, nothing more is produced. Two observations, many other responses apart, show it.
      const look = Effect.gen(function* () {
        for (let count = 0; count < 20; count++) yield* generate(server, "mirror", '{"TEXT":"a"}')
        return server.produced.count
      })
      let [before, after] = [yield* look, yield* look]
      for (let tries = 0; after > before && tries < 100; tries++) [before, after] = [after, yield* look]
      assert.strictEqual(after, before)
      for (let events = 0; server.produced.count === after && events < 10_000; events++) yield* chunk(response)
      assert.isAbove(server.produced.count, after)
      response.destroy()
      assert.strictEqual(yield* Queue.take(server.interrupted), "bulk")
    }),
  )

  it.live("many at the same time, each with its own responses in order", () =>
    Effect.gen(function* () {
      const server = yield* harness()
      const responses = yield* Effect.forEach(
        Array.from({ length: 100 }, (_, stream) => Array.from({ length: 20 }, (_, index) => `${stream}-${index}`)),
        (words) =>
          Effect.map(generateStream(server, "words", JSON.stringify({ TEXT: words.join(" ") })), ({ body }) =>
            assert.strictEqual(body.toString(), words.map((word, index) => event(word, index)).join("")),
          ),
        { concurrency: "unbounded" },
      )
      assert.lengthOf(responses, 100)
    }),
  )
})

describe("the connection", () => {
  it.live("is kept after a refusal, a failure and a stream", () =>
    Effect.gen(function* () {
      const server = yield* harness()
      const agent = yield* Effect.acquireRelease(
        Effect.sync(() => new Agent({ keepAlive: true, maxSockets: 1 })),
        (agent) => Effect.sync(() => agent.destroy()),
      )
      const sockets = new Set<unknown>()
      const statuses: Array<number | undefined> = []
      for (const [route, body] of [
        ["generate", "{"],
        ["generate", '{"TEXT":"a b"}'],
        ["generate_stream", '{"TEXT":"a fail"}'],
        ["generate_stream", '{"TEXT":"fail"}'],
        ["generate_stream", '{"TEXT":"a b"}'],
        ["generate", '{"TEXT":"a"}'],
      ] as const) {
        const response = yield* open(server, "", { route, body, agent })
        sockets.add(response.socket)
        statuses.push(response.statusCode)
        yield* rest(response)
      }
      assert.deepStrictEqual([statuses, sockets.size], [[400, 501, 200, 500, 200, 200], 1])
    }),
  )

  it.live("pipelined requests are answered in their order, failures among them", () =>
    Effect.gen(function* () {
      const server = yield* harness()
      const post = (route: string, body: string, more = "") =>
        `POST /v2/models/words/${route} HTTP/1.1\r\nhost: x\r\ncontent-length: ${body.length}\r\n${more}\r\n${body}`
      const text = yield* Effect.callback<string>((resume) => {
        let received = ""
        const socket = connect(server.port, "127.0.0.1", () =>
          socket.write(
            post("generate_stream", '{"TEXT":"a fail"}') +
              post("generate", "{") +
              post("generate_stream", '{"TEXT":"b c"}') +
              post("generate", '{"TEXT":"d"}', "connection: close\r\n"),
          ),
        )
        socket.on("data", (data: Buffer) => (received += data.toString()))
        socket.on("close", () => resume(Effect.succeed(received)))
      })
      assert.deepStrictEqual(
        text.match(/HTTP\/1.1 \d+/g),
        [200, 400, 200, 200].map((status) => `HTTP/1.1 ${status}`),
      )
      assert.deepStrictEqual(text.match(/(?<="WORD":)"."|no such word|Missing a name/g), [
        '"a"',
        "no such word",
        "Missing a name",
        '"b"',
        '"c"',
        '"d"',
      ])
    }),
  )

  it.live("a stop lets a stream in flight finish, and then closes", () =>
    Effect.gen(function* () {
      const server = yield* harness({ stopTimeoutMillis: 25_000 })
      const response = yield* open(server, "a gate b")
      yield* chunk(response)
      const stopped = yield* Effect.forkChild(server.stop, { startImmediately: true })
      yield* Deferred.succeed(server.gate, undefined)
      assert.strictEqual(yield* rest(response), event("gate", 1) + event("b", 2))
      yield* Fiber.join(stopped)
    }),
  )

  it.live("a stop that has waited long enough cuts a stream off, and its model", () =>
    Effect.gen(function* () {
      const server = yield* harness({ stopTimeoutMillis: 0 })
      const response = yield* open(server, "a never")
      yield* chunk(response)
      yield* server.stop
      assert.strictEqual(yield* Queue.take(server.interrupted), "never")
    }),
  )
})
