/**
 * The texts of a server with the option `announce`. Programs and signals of a real process:
 * test/programs/readme.test.ts and test/programs/serve.test.ts.
 */
import { expect, it } from "@effect/vitest"
import { Model, Tensor } from "@nereid/core"
import { Context, Deferred, Effect, Exit, Fiber, Layer, Scope } from "effect"
import { TestConsole } from "effect/testing"
import { mkdtemp, readFile, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Server from "../Server.ts"

const fields = { inputs: { x: Tensor.INT32(1) }, outputs: { x: Tensor.INT32(1) } }

class Echo extends Model.Service<Echo>()("echo", fields) {}

class Other extends Model.Service<Other>()("other", fields) {}

const echo = Model.each(Echo, ({ x }) => Effect.succeed({ x }))

const local = { host: "127.0.0.1", port: 0 }

const ports = { http: local, grpc: false, metrics: false } as const

it.live("prints the table, the ports and a request; on the end of its scope how it stopped", () =>
  Effect.gen(function* () {
    const scope = yield* Scope.make()
    const layer = Server.layer([Echo], { ...ports, announce: true }).pipe(Layer.provide(echo))
    const { http } = Context.get(yield* Layer.buildWithScope(layer, scope), Server.Server)
    const [started, ...others] = yield* TestConsole.logLines
    expect(others).toEqual([])
    expect(started).toMatch(/^MODEL +VERSION.*\n[- ]+\necho +1 +READY +0 +x INT32\[1\] +x INT32\[1\]\n\n/)
    expect(started).toContain(`\nStarted HTTPService at 127.0.0.1:${http?.port}\n\nTry:\n  curl -s http://127.0.0.1:`)
    yield* Scope.close(scope, Exit.void)
    const lines = yield* TestConsole.logLines
    expect(lines.slice(1)).toEqual(["Stopping", expect.stringMatching(/^Stopped in \d+ ms$/)])
  }).pipe(Effect.provide(TestConsole.layer)),
)

/** Removed with the scope. */
const folder = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(join(tmpdir(), "nereid-announcement-"))),
  (path) => Effect.promise(() => rm(path, { recursive: true })),
)

it.live("writes the table, the ports and the stop to the log file too, a line each, if they are not filtered", () =>
  Effect.gen(function* () {
    const messages = Effect.fnUntraced(function* (logging: { readonly info: boolean }) {
      const file = join(yield* folder, "log")
      const options = { ...ports, announce: true, logging: { ...logging, file } }
      yield* Effect.scoped(Layer.build(Server.layer([Echo], options).pipe(Layer.provide(echo))))
      const lines = (yield* Effect.promise(() => readFile(file, "utf8"))).split("\n").slice(0, -1)
      return lines.map((line) => /^I\d{4} \S+ \d+ fiber:\d+\] (".*")$/.exec(line)?.[1] ?? line)
    })
    expect(yield* messages({ info: true })).toEqual([
      expect.stringMatching(/^"MODEL +VERSION/),
      expect.stringMatching(/^"[- ]+"$/),
      expect.stringMatching(/^"echo +1 +READY/),
      expect.stringMatching(/^"Started HTTPService at 127\.0\.0\.1:\d+"$/),
      '"Stopping"',
      expect.stringMatching(/^"Stopped in \d+ ms"$/),
    ])
    expect((yield* TestConsole.logLines).length).toBe(3)
    expect(yield* messages({ info: false })).toEqual([])
    expect((yield* TestConsole.logLines).length).toBe(6)
  }).pipe(Effect.provide(TestConsole.layer), Effect.scoped),
)

it.live("counts the requests that a stop answers, and those that it cuts off", () =>
  Effect.gen(function* () {
    const entered = [yield* Deferred.make<void>(), yield* Deferred.make<void>()] as const
    const release = yield* Deferred.make<void>()
    const slow = Layer.mergeAll(
      Model.each(
        Echo,
        Effect.fnUntraced(function* (sample) {
          yield* Deferred.succeed(entered[0], undefined)
          yield* Deferred.await(release)
          return sample
        }),
      ),
      Model.each(Other, () => Effect.andThen(Deferred.succeed(entered[1], undefined), Effect.never)),
    )
    const scope = yield* Scope.make()
    const options = { ...ports, announce: true, drainTimeout: "200 millis" } as const
    const layer = Server.layer([Echo, Other], options).pipe(Layer.provide(slow))
    const { http } = Context.get(yield* Layer.buildWithScope(layer, scope), Server.Server)
    const infer = (model: string) =>
      Effect.promise(async () => {
        const body = JSON.stringify({ inputs: [{ name: "x", shape: [1], datatype: "INT32", data: [7] }] })
        const response = await fetch(`http://127.0.0.1:${http?.port}/v2/models/${model}/infer`, {
          method: "POST",
          body,
        })
        return response.status
      })
    const responses = yield* Effect.forkChild(Effect.all([infer("echo"), infer("other")], { concurrency: 2 }))
    for (const one of entered) yield* Deferred.await(one)
    const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void), { startImmediately: true })
    yield* Deferred.succeed(release, undefined)
    yield* Fiber.join(closing)
    const lines = yield* TestConsole.logLines
    expect(lines.slice(1)).toEqual([
      "Stopping: 2 requests in flight may take 0.2 s more",
      expect.stringMatching(/^Stopped in \d+ ms: 1 request answered, 1 request cut off$/),
    ])
    expect(yield* Fiber.join(responses)).toEqual([200, 503])
  }).pipe(Effect.provide(TestConsole.layer)),
)

it.live("prints nothing without the option, nor for a start that fails", () =>
  Effect.gen(function* () {
    yield* Effect.scoped(Layer.build(Server.layer([Echo], ports).pipe(Layer.provide(echo))))
    const failing = Server.layer([Echo], {
      ...ports,
      announce: true,
      tls: { http: { cert: "/absent", key: "/absent" } },
    })
    yield* Effect.flip(Effect.scoped(Layer.build(failing.pipe(Layer.provide(echo)))))
    expect(yield* TestConsole.logLines).toEqual([])
  }).pipe(Effect.provide(TestConsole.layer)),
)

it.live("names the signal that the program handles, and leaves a signal that it does not handle to Node", () =>
  Effect.gen(function* () {
    const before = process.listenerCount("SIGTERM")
    const scope = yield* Scope.make()
    const layer = Server.layer([Echo], { ...ports, announce: true }).pipe(Layer.provide(echo))
    yield* Layer.buildWithScope(layer, scope)
    const stop = () => void Effect.runFork(Scope.close(scope, Exit.void))
    if (before === 0) expect(process.listenerCount("SIGTERM")).toBe(0)
    process.once("SIGTERM", stop)
    yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
    expect(process.listenerCount("SIGTERM")).toBe(before + 2)
    process.emit("SIGTERM", "SIGTERM")
    expect((yield* TestConsole.logLines)[1]).toBe("Stopping on SIGTERM")
    yield* Scope.close(scope, Exit.void)
    expect(process.listenerCount("SIGTERM")).toBe(before)
  }).pipe(Effect.provide(TestConsole.layer)),
)
