/** Malformed HTTP after valid HTTP on one connection: each request gets exactly one response. */
import { once } from "node:events"
import { connect } from "node:net"
import { assert, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Queue } from "effect"
import { Model, Tensor } from "@nereid/core"
import { serve } from "./HttpInfer.fixture.ts"

class Gated extends Model.Service<Gated>()("gated", {
  inputs: { X: Tensor.FP32(1) },
  outputs: { Y: Tensor.FP32(1) },
}) {}

const harness = Effect.gen(function* () {
  const started = yield* Queue.unbounded<Deferred.Deferred<void>>()
  const interrupted = yield* Queue.unbounded<void>()
  const layer = Model.each(
    Gated,
    Effect.fnUntraced(function* ({ X }) {
      const gate = yield* Deferred.make<void>()
      yield* Queue.offer(started, gate)
      yield* Effect.onInterrupt(Deferred.await(gate), () => Queue.offer(interrupted, undefined))
      return { Y: X }
    }),
  )
  return { ...(yield* serve(layer, [Gated])), started, interrupted }
})

/** Sends bytes and answers with all that comes until the server closes the connection. */
const exchanged = (port: number, bytes: string): Effect.Effect<string> =>
  Effect.callback((resume) => {
    let text = ""
    const socket = connect(port, "127.0.0.1", () => socket.write(bytes))
    socket.on("data", (chunk: Buffer) => (text += chunk.toString("latin1")))
    socket.on("error", () => {})
    socket.on("close", () => resume(Effect.succeed(text)))
    return Effect.sync(() => socket.destroy())
  })

const splitResponses = (text: string) => text.split(/(?=HTTP\/1\.1 )/)

const body = '{"inputs":[{"name":"X","shape":[1],"datatype":"FP32","data":[1]}]}'
const infer = "POST /v2/models/gated/infer HTTP/1.1\r\nhost: x\r\n"
const whole = `${infer}content-length: ${body.length}\r\n\r\n${body}`
const metadata = "GET /v2/models/gated HTTP/1.1\r\nhost: x\r\n\r\n"
const brokenBody = `${infer}transfer-encoding: chunked\r\n\r\nzz\r\n`

it.live.each([
  ["nonsense", "\u0000nonsense\r\n\r\n"],
  ["a body that is none", brokenBody],
])("%s behind requests without an answer leaves these their answers, then closes", ([, broken]) =>
  Effect.gen(function* () {
    const { port, started } = yield* harness
    const text = yield* Effect.forkChild(exchanged(port, whole + metadata + broken))
    yield* Deferred.succeed(yield* Queue.take(started), undefined)
    const [first = "", second = "", ...more] = splitResponses(yield* Fiber.join(text))
    assert.match(first, /^HTTP\/1\.1 200 OK.*"model_name":"gated"/s)
    assert.match(second, /^HTTP\/1\.1 200 OK.*"name":"gated"/s)
    assert.deepStrictEqual(more, [])
  }),
)

it.live("an empty body gets a 400", () =>
  Effect.gen(function* () {
    const { port } = yield* harness
    const [response = "", ...more] = splitResponses(yield* exchanged(port, brokenBody))
    assert.match(response, /^HTTP\/1\.1 400 Bad Request.*malformed HTTP/s)
    assert.deepStrictEqual(more, [])
  }),
)

it.live("more and more nonsense ends with the one answer", () =>
  Effect.gen(function* () {
    const { port, started } = yield* harness
    const socket = connect(port, "127.0.0.1", () => socket.write(whole))
    let text = ""
    socket.on("data", (chunk: Buffer) => (text += chunk.toString("latin1")))
    socket.on("error", () => {})
    const closed = once(socket, "close")
    const gate = yield* Queue.take(started)
    for (let index = 0; index < 20; index++) {
      socket.write("\u0000nonsense\r\n\r\n")
      // So that it travels in pieces.
      yield* Effect.sleep(1)
    }
    yield* Deferred.succeed(gate, undefined)
    yield* Effect.promise(() => closed)
    assert.strictEqual(splitResponses(text).length, 1)
    assert.match(text, /^HTTP\/1\.1 200 OK/)
  }),
)

it.live.each(["nonsense", "GET /v2 HTTP/1.1\r\n"])(
  "a caller that goes away behind %j takes its requests back",
  (broken) =>
    Effect.gen(function* () {
      const { port, started, interrupted } = yield* harness
      const text = yield* Effect.forkChild(exchanged(port, whole + broken))
      yield* Queue.take(started)
      yield* Fiber.interrupt(text)
      yield* Queue.take(interrupted)
    }),
)
