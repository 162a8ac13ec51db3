/** The stream of the live view over HTTP: its messages, viewers that do not read, and its end. */
import { get, type IncomingMessage } from "node:http"
import { connect } from "node:net"
import { setImmediate as nextTurn } from "node:timers/promises"
import { expect, it } from "@effect/vitest"
import { Model, Tensor } from "@nereid/core"
import { ModelVersion } from "@nereid/core/internal/lifecycle/ModelVersion"
import type { LiveMessage, Opening } from "@nereid/dashboard/internal/live/LiveMessage"
import { maxViewers } from "@nereid/dashboard/internal/live/LiveMessage"
import { Effect, Queue } from "effect"
import { harness } from "./LiveView.fixture.ts"

class Echo extends Model.Service<Echo>()("echo", {
  inputs: { X: Tensor.scalar("INT32") },
  outputs: { X: Tensor.scalar("INT32") },
  maxBatchSize: 8,
}) {}

const EchoLive = Model.each(Echo, ({ X }) => Effect.delay(Effect.succeed({ X }), "10 millis"))

const serve = (options?: Parameters<typeof harness>[2]) => harness(EchoLive, Effect.all([Echo]), options)

interface Viewer {
  readonly response: IncomingMessage
  /** The next message. */
  readonly next: Effect.Effect<LiveMessage>
  /** The next step. A busy machine may cause advice, such as on delays of the event loop, between two of them. */
  readonly nextStep: Effect.Effect<LiveMessage>
  /** Completes with the end of the stream. */
  readonly ended: Effect.Effect<void>
}

const view = Effect.fnUntraced(function* (url: string, headers: Readonly<Record<string, string>> = {}) {
  const messages = yield* Queue.unbounded<LiveMessage>()
  const end = yield* Queue.unbounded<void>()
  const request = get(url, { headers, agent: false })
  yield* Effect.addFinalizer(() => Effect.sync(() => request.destroy()))
  const response = yield* Effect.callback<IncomingMessage>((resume) => {
    request.on("response", (response) => resume(Effect.succeed(response)))
  })
  let text = ""
  response.on("data", (chunk: Buffer) => {
    text += chunk.toString()
    const events = text.split("\n\n")
    text = events.pop() ?? ""
    for (const event of events) Queue.offerUnsafe(messages, JSON.parse(event.slice("data: ".length)))
  })
  response.on("close", () => Queue.offerUnsafe(end, undefined))
  const next = Queue.take(messages)
  const nextStep = Effect.repeat(next, { until: ({ type }) => type === "step" })
  return { response, next, nextStep, ended: Queue.take(end) } satisfies Viewer
})

const opening = (message: LiveMessage): Opening => {
  if (message.type !== "opening") throw new Error(`expected an opening, got ${message.type}`)
  return message
}

it.effect("a viewer receives the last steps, and each further one", () =>
  Effect.gen(function* () {
    const { url, step, models } = yield* serve()
    yield* Effect.forkChild(models[0].infer({ X: 1 }, { id: "first" }), { startImmediately: true })
    yield* step()
    yield* step()
    const { response, next } = yield* view(`${url}/live`)
    expect(response.statusCode).toBe(200)
    expect(response.headers["content-type"]).toBe("text/event-stream; charset=utf-8")
    const { steps, slow, models: described, server, advice } = opening(yield* next)
    expect(steps).toMatchObject([
      { index: 1, models: [{ name: "echo", requests: 1 }] },
      { index: 2, models: [] },
    ])
    expect(slow).toMatchObject([{ name: "echo", id: "first", millis: 10, outcome: "success", batch: 1 }])
    expect(advice).toEqual([])
    expect(described).toEqual([
      {
        name: "echo",
        version: "1",
        state: "READY",
        reason: "",
        running: {
          source: "code",
          origin: "code",
          threaded: false,
          decoupled: false,
          maxBatchSize: 8,
          maxQueueSize: 1024,
          maxQueueDelay: 0,
          instances: 1,
          cache: false,
        },
      },
    ])
    expect(server).toMatchObject({ name: "nereid", control: "none", heldLimit: null, started: 0 })
    const sent = yield* step()
    expect(sent.process.connections).toBe(1)
    expect(yield* next).toEqual({ type: "step", step: sent })
  }),
)

it.effect("a message follows a step in which models or slow requests have changed", () =>
  Effect.gen(function* () {
    const { url, step, models, store } = yield* serve()
    const { next } = yield* view(`${url}/live`)
    yield* next
    yield* Effect.forkChild(models[0].infer({ X: 1 }), { startImmediately: true })
    yield* step()
    expect([(yield* next).type, (yield* next).type]).toEqual(["step", "slow"])
    const broken = new ModelVersion({ name: "broken", version: "1", origin: "code" })
    store.add(broken)
    broken.begin()
    broken.fail("it has no file")
    yield* step()
    expect((yield* next).type).toBe("step")
    expect(yield* next).toMatchObject({
      type: "models",
      models: [{ name: "echo" }, { name: "broken", state: "UNAVAILABLE", reason: "it has no file" }],
    })
    yield* step()
    yield* step()
    expect([(yield* next).type, (yield* next).type]).toEqual(["step", "step"])
  }),
)

it.effect("the stream ends when the server begins to stop, and no further one begins", () =>
  Effect.gen(function* () {
    const { url, gateway } = yield* serve()
    const { next, ended } = yield* view(`${url}/live`)
    yield* next
    gateway.beginDrain()
    yield* ended
    const { response } = yield* view(`${url}/live`)
    expect(response.statusCode).toBe(503)
  }),
)

it.effect("there are at most as many viewers as the limit says; a place is free once one has left", () =>
  Effect.gen(function* () {
    const { url, step, view: live } = yield* serve()
    const viewers = yield* Effect.forEach(Array.from({ length: maxViewers }), () => view(`${url}/live`))
    yield* Effect.forEach(viewers, ({ next }) => next)
    const refused = yield* view(`${url}/live`)
    expect(refused.response.statusCode).toBe(503)
    viewers[0]?.response.destroy()
    // A system tells of a closed socket at the next bytes.
    const left = Effect.andThen(
      step(),
      Effect.map(Effect.promise(nextTurn), () => live.viewers),
    )
    yield* Effect.repeat(left, { until: (count) => count < maxViewers })
    expect((yield* view(`${url}/live`)).response.statusCode).toBe(200)
  }),
)

it.effect("a viewer that does not read is cut off, and the others are not", () =>
  Effect.gen(function* () {
    const { url, step, view: live, models } = yield* serve()
    const reading = yield* view(`${url}/live`)
    yield* reading.next
    const socket = connect(Number(new URL(url).port), "127.0.0.1")
    const closed = yield* Queue.unbounded<void>()
    socket.on("close", () => Queue.offerUnsafe(closed, undefined))
    socket.on("error", () => {})
    yield* Effect.callback<void>((resume) => {
      socket.write("GET /live HTTP/1.1\r\nhost: a\r\n\r\n", () => resume(Effect.void))
    })
    yield* Effect.callback<void>((resume) => {
      socket.once("data", () => {
        socket.pause()
        resume(Effect.void)
      })
    })
    // Large steps, until they fill the buffers of both sockets, and then those that may be unread.
    models[0].model.description.statistics.observers.clear()
    let steps = 0
    while (live.viewers === 2 && steps < 20_000) {
      for (let rows = 1; rows < 20_000; rows += 2) {
        models[0].model.description.statistics.executed(rows, { input: 0, infer: 0, output: 0 }, 0)
      }
      yield* step(1)
      yield* reading.nextStep
      steps += 1
    }
    expect(live.viewers).toBe(1)
    socket.resume()
    yield* Queue.take(closed)
    yield* step()
    yield* reading.nextStep
  }),
)

it.effect("a restricted API asks for its header", () =>
  Effect.gen(function* () {
    const restrictedApis = [{ apis: ["statistics"] as const, key: "admin", value: "secret" }]
    const { url } = yield* serve({ restrictedApis })
    expect((yield* view(`${url}/live`)).response.statusCode).toBe(403)
    const { response, next } = yield* view(`${url}/live`, { admin: "secret" })
    expect(response.statusCode).toBe(200)
    expect((yield* next).type).toBe("opening")
  }),
)

it.effect("the stream lies below the path of the page, and a server without a page has none", () =>
  Effect.gen(function* () {
    const below = yield* serve({ dashboard: { path: "/status/page" } })
    expect((yield* view(`${below.url}/live`)).response.statusCode).toBe(404)
    expect((yield* view(`${below.url}/status/page/live`)).response.statusCode).toBe(200)
    const without = yield* serve({ dashboard: false })
    expect((yield* view(`${without.url}/live`)).response.statusCode).toBe(404)
  }),
)
