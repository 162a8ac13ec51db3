/** The stream of the log over HTTP, for a whole server whose loggers are its own or those of the program. */
import { expect, it } from "@effect/vitest"
import { Model, Tensor } from "@nereid/core"
import { type LogLine, type LogMessage, maxLogLines } from "@nereid/dashboard/internal/live/LogMessage"
import { Effect, Layer, Logger, Queue } from "effect"
import * as Logging from "../log/Logging.ts"
import * as LogSettings from "../log/LogSettings.ts"
import type { LogEvent } from "../log/LogLine.ts"
import * as Server from "../Server.ts"
import { LogRing } from "./LogRing.ts"

class Echo extends Model.Service<Echo>()("echo", {
  inputs: { X: Tensor.scalar("INT32") },
  outputs: { X: Tensor.scalar("INT32") },
}) {}

const EchoLive = Model.each(Echo, ({ X }) =>
  Effect.as(Effect.annotateLogs(Effect.logWarning(`sample ${X}`), { ratio: 0.5 }), { X }),
)

const free = { host: "127.0.0.1", port: 0 }

const quiet = Logging.layer({ verboseLevel: 0, file: "/dev/null" })

const serve = Effect.fnUntraced(function* (
  options: Server.ServerOptions,
  logging: Layer.Layer<never, unknown> = Layer.empty,
) {
  const layer = Server.layer([Echo], { http: free, grpc: false, metrics: false, dashboard: true, ...options })
  const context = yield* Layer.build(layer.pipe(Layer.provide(EchoLive), Layer.provide(logging)))
  const { http } = yield* Effect.provideContext(Server.Server, context)
  const url = `http://127.0.0.1:${http?.port}`
  const infer = (X: number, id = "") =>
    Effect.promise(async () => {
      const inputs = [{ name: "X", datatype: "INT32", shape: [1], data: [X] }]
      const response = await fetch(`${url}/v2/models/echo/infer`, {
        method: "POST",
        body: JSON.stringify({ id, inputs }),
      })
      return response.text()
    })
  return { url, infer }
})

const watch = Effect.fnUntraced(function* (url: string, headers: Readonly<Record<string, string>> = {}) {
  const controller = new AbortController()
  yield* Effect.addFinalizer(() => Effect.sync(() => controller.abort()))
  const response = yield* Effect.promise(() => fetch(url, { headers, signal: controller.signal }))
  const lines = yield* Queue.unbounded<LogLine>()
  const read = async () => {
    let text = ""
    for await (const chunk of response.body ?? []) {
      text += Buffer.from(chunk).toString()
      const events = text.split("\n\n")
      text = events.pop() ?? ""
      for (const event of events) {
        const message: LogMessage = JSON.parse(event.slice("data: ".length))
        for (const line of message.lines) Queue.offerUnsafe(lines, line)
      }
    }
  }
  if (response.status === 200) void read().catch(() => {})
  return { status: response.status, next: Queue.take(lines) }
})

it.live("has the lines of the past and of now, with model, request and annotations", () =>
  Effect.gen(function* () {
    const { url, infer } = yield* serve({}, quiet)
    yield* infer(1, "one")
    const { next } = yield* watch(`${url}/log`)
    const first = yield* next
    expect(first).toMatchObject({
      level: "WARN",
      text: "sample 1",
      model: "echo",
      requestId: "one",
      annotations: { ratio: 0.5 },
    })
    expect(Math.abs(first.time - Date.now())).toBeLessThan(60_000)
    yield* infer(2)
    expect(yield* next).toMatchObject({ index: first.index + 1, text: "sample 2" })
  }),
)

it.live("follows the levels that a client sets", () =>
  Effect.gen(function* () {
    const { url, infer } = yield* serve({}, quiet)
    const { next } = yield* watch(`${url}/log`)
    const set = (settings: object) =>
      Effect.promise(() => fetch(`${url}/v2/logging`, { method: "POST", body: JSON.stringify(settings) }))
    yield* set({ log_warning: false })
    yield* infer(1)
    yield* set({ log_verbose_level: 1 })
    yield* infer(2, "two")
    expect(yield* next).toMatchObject({
      level: "DEBUG",
      model: "echo",
      requestId: "two",
      annotations: { operation: "POST /v2/models/echo/infer", status: "200" },
    })
  }),
)

it.live("has the server's lines where the program has other loggers", () =>
  Effect.gen(function* () {
    const silent = Logger.make(() => {})
    const { url, infer } = yield* serve({ logging: { verboseLevel: 1 } }, Logger.layer([silent]))
    const { next } = yield* watch(`${url}/log`)
    yield* infer(1)
    expect(yield* next).toMatchObject({ text: expect.stringContaining("POST /v2/models/echo/infer: 200") })
  }),
)

it.live("needs the header of the restricted API", () =>
  Effect.gen(function* () {
    const restrictedApis = { http: [{ apis: ["logging"] as const, key: "admin", value: "secret" }] }
    const { url } = yield* serve({ restrictedApis }, quiet)
    expect((yield* watch(`${url}/log`)).status).toBe(403)
    expect((yield* watch(`${url}/log`, { admin: "secret" })).status).toBe(200)
    expect((yield* watch(`${url}/live`)).status).toBe(200)
  }),
)

const logged = Effect.fnUntraced(function* (effect: Effect.Effect<void>) {
  const { events, isOn } = LogSettings.make()
  const ring = new LogRing()
  events.observe((event) => ring.add(event))
  const logger = Logger.make((event: LogEvent) => {
    if (isOn(event.logLevel)) events.publish(event)
  })
  yield* effect.pipe(Effect.provide(Logger.layer([logger])))
  return ring.lines.map((line): LogLine => JSON.parse(line))
})

it.effect("lines are bounded in number, and each of them in length", () =>
  Effect.gen(function* () {
    const many = yield* logged(Effect.forEach(Array.from({ length: maxLogLines + 5 }), (_, at) => Effect.log(at)))
    expect([many.length, many[0]?.index, many.at(-1)?.text]).toEqual([maxLogLines, 6, String(maxLogLines + 4)])
    const large = yield* logged(
      Effect.annotateLogs(
        Effect.forEach(Array.from({ length: maxLogLines }), () => Effect.log("x".repeat(100_000))),
        Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`annotation ${at}`, "y".repeat(1000)])),
      ),
    )
    expect(large.at(-1)?.text).toHaveLength(4097)
    expect(Object.keys(large.at(-1)?.annotations ?? {})).toHaveLength(20)
    expect(JSON.stringify(large).length).toBeLessThan(1024 * 1024 + 1000)
    expect(large.length).toBeGreaterThan(50)
  }),
)

it.effect("a line with a cause has its text and stack", () =>
  Effect.gen(function* () {
    const failing = Effect.fail(new Error("broken")).pipe(
      Effect.catchCause((cause) => Effect.logError("it failed", cause)),
    )
    expect(yield* logged(failing)).toMatchObject([
      { level: "ERROR", text: expect.stringMatching(/^it failed\nError: broken\n +at /) },
    ])
  }),
)
