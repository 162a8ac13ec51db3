/**
 * Models that are not there yet, and those that come and go while a server runs, over both ports. (Without:
 * CodeModels.test.ts.)
 */
import { ModelVersion } from "@nereid/core/internal/lifecycle/ModelVersion"
import { expect, it } from "@effect/vitest"
import { Errors, Model, Registry, Tensor } from "@nereid/core"
import { tagHeader } from "@nereid/core/internal/wire/ErrorHeaders"
import { ModelRepository, noRepository, type Open } from "@nereid/core/internal/lifecycle/ModelRepository"
import { GRPCInferenceService } from "@nereid/protocol/grpc_service"
import { Context, Deferred, Effect, Exit, Fiber, Layer, Schema, Scope } from "effect"
import { clients, type Call } from "./grpc/GrpcServer.fixture.ts"
import * as Server from "./Server.ts"

const { modelInfer, modelReady, repositoryIndex, serverLive, serverReady } = GRPCInferenceService.method

const fields = { inputs: { x: Tensor.scalar("INT32") }, outputs: { y: Tensor.scalar("INT32") } }

class First extends Model.Service<First>()("first", fields) {}
class Later extends Model.Service<Later>()("later", fields) {}

const first = Model.each(First, ({ x }) => ({ y: x }))
const times = (factor: number) => Model.each(Later, ({ x }) => ({ y: x * factor }))

/** Waits to be initialized, and answers requests once it may; has entered once so many of them have. */
const slow = (requests = 1) => {
  let requestCount = 0
  const initializing = Deferred.makeUnsafe<void>()
  const initialize = Deferred.makeUnsafe<void>()
  const entered = Deferred.makeUnsafe<void>()
  const opened = Deferred.makeUnsafe<void>()
  const log: Array<string> = []
  const handler = Effect.gen(function* () {
    yield* Effect.addFinalizer(() => Effect.sync(() => log.push("finalized")))
    yield* Deferred.succeed(initializing, undefined)
    yield* Deferred.await(initialize)
    return ({ x }: { readonly x: number }) =>
      Effect.suspend(() => {
        requestCount += 1
        if (requestCount === requests) Deferred.doneUnsafe(entered, Effect.void)
        return Effect.as(Deferred.await(opened), { y: x })
      })
  })
  return { handler, initializing, initialize, entered, response: opened, log }
}

const anywhere = { host: "127.0.0.1", port: 0 } as const
const free = { http: anywhere, grpc: anywhere, metrics: false } as const

/** Ports that were free a moment ago. */
const somewhere = Effect.promise(async () => {
  const probe = await Server.start([], Layer.empty, free)
  await probe.stop()
  return { http: probe.http, grpc: probe.grpc, metrics: false } as const
})

const body = JSON.stringify({ inputs: [{ name: "x", shape: [1], datatype: "INT32", data: [7] }] })

interface Ports {
  readonly http: Server.Address | undefined
  readonly grpc: Server.Address | undefined
}

/** Calls a model over both ports. */
const requestsTo = Effect.fnUntraced(function* ({ http, grpc }: Ports) {
  const call: Call = yield* clients["grpc-js"]({ port: grpc?.port ?? 0 })
  const fetched = (path: string, init: RequestInit = {}) =>
    Effect.promise(async () => {
      const response = await fetch(`http://127.0.0.1:${http?.port}/v2/${path}`, {
        ...init,
        headers: { connection: "close" },
      })
      return { status: response.status, tag: response.headers.get(tagHeader), text: await response.text() }
    })
  const index = Effect.gen(function* () {
    const { text } = yield* fetched("repository/index", { method: "POST" })
    expect(yield* call(repositoryIndex, {})).toMatchObject({ response: { models: JSON.parse(text) } })
    return JSON.parse(text)
  })
  const infer = (name: string) =>
    Effect.all(
      {
        overHttp: fetched(`models/${name}/infer`, { method: "POST", body }),
        overGrpc: call(modelInfer, {
          modelName: name,
          inputs: [{ name: "x", datatype: "INT32", shape: [1n], contents: { intContents: [7] } }],
        }),
      },
      { concurrency: "unbounded" },
    )
  /** Returns the value that both protocols respond with. */
  const value = (name: string) =>
    Effect.map(infer(name), ({ overHttp, overGrpc }) => {
      expect(overHttp.status, overHttp.text).toBe(200)
      const [{ data }] = JSON.parse(overHttp.text).outputs
      const raw = "response" in overGrpc ? overGrpc.response.rawOutputContents[0] : undefined
      expect(data).toEqual([...new Int32Array(raw?.slice().buffer ?? new ArrayBuffer())])
      return data[0]
    })
  const status = (path: string) => Effect.map(fetched(path), (response) => response.status)
  const isReady = (name: string) =>
    Effect.map(call(modelReady, { name }), (outcome) => ("response" in outcome ? outcome.response.ready : outcome.code))
  return { call, index, infer, value, status, isReady }
})

it.live("ports are open while models load: live, not ready, and requests get a retry hint", () =>
  Effect.gen(function* () {
    const ports = yield* somewhere
    const { handler, initializing, initialize, response } = slow()
    yield* Deferred.succeed(response, undefined)
    const layer = Layer.merge(first, Model.each(Later, handler))
    const started = Server.start([First, Later], layer, ports)
    yield* Deferred.await(initializing)
    const { call, index, infer, value, status, isReady } = yield* requestsTo(ports)
    for (const strict of ["health/live", "models/later"]) expect(yield* status(strict), strict).toBe(200)
    for (const path of ["health/ready", "models/later/ready", "models/first/ready"]) {
      expect(yield* status(path), path).toBe(400)
    }
    expect(yield* call(serverLive, {})).toMatchObject({ response: { live: true } })
    expect(yield* call(serverReady, {})).toMatchObject({ response: { ready: false } })
    expect(yield* isReady("later")).toBe(false)
    const message = "Request for unknown model: 'later' version 1 is not at ready state"
    const { overHttp, overGrpc } = yield* infer("later")
    expect(overHttp).toEqual({ status: 503, tag: "ModelNotReady", text: JSON.stringify({ error: message }) })
    expect(overGrpc).toEqual({ code: 14, tag: "ModelNotReady", message })
    expect(yield* index).toEqual(
      ["first", "later"].map((name) => ({ name, version: "1", state: "LOADING", reason: "" })),
    )
    yield* Deferred.succeed(initialize, undefined)
    yield* Effect.promise(() => started)
    for (const path of ["health/ready", "models/later/ready"]) expect(yield* status(path), path).toBe(200)
    expect(yield* call(serverReady, {})).toMatchObject({ response: { ready: true } })
    expect(yield* value("later")).toBe(7)
    yield* Effect.promise(async () => (await started).stop())
  }),
)

it.live("a server without strict readiness is not ready before it has loaded its models", () =>
  Effect.gen(function* () {
    const ports = yield* somewhere
    const { handler, initializing, initialize } = slow()
    const started = Server.start([Later], Model.each(Later, handler), { ...ports, strictReadiness: false })
    yield* Deferred.await(initializing)
    const { status } = yield* requestsTo(ports)
    expect(yield* status("health/ready")).toBe(400)
    yield* Deferred.succeed(initialize, undefined)
    yield* Effect.promise(() => started)
    expect(yield* status("health/ready")).toBe(200)
    yield* Effect.promise(async () => (await started).stop())
  }),
)

it.live("as a layer: its ports open first, it is there once its models are, and they with it", () =>
  Effect.gen(function* () {
    const ports = yield* somewhere
    const { handler, initializing, initialize, response, log } = slow()
    yield* Deferred.succeed(response, undefined)
    const program = Effect.gen(function* () {
      const { index } = yield* Server.Server
      const { infer } = yield* Later
      return [index().map(({ state }) => state), yield* infer({ x: 3 })]
    })
    const running = yield* Effect.forkChild(
      Effect.provide(program, Server.layer([Later], { ...ports, provide: Model.each(Later, handler) })),
    )
    yield* Deferred.await(initializing)
    const { status } = yield* requestsTo(ports)
    expect(yield* status("health/ready")).toBe(400)
    yield* Deferred.succeed(initialize, undefined)
    expect(yield* Fiber.join(running)).toEqual([["READY"], { y: 3 }])
    expect(log).toEqual(["finalized"])
  }),
)

it.live("a stop of one that is starting ends its load", () =>
  Effect.gen(function* () {
    const ports = yield* somewhere
    const { handler, initializing, log } = slow()
    const starting = yield* Effect.forkChild(
      Effect.scoped(Layer.build(Server.layer([Later], { ...ports, provide: Model.each(Later, handler) }))),
    )
    yield* Deferred.await(initializing)
    yield* Fiber.interrupt(starting)
    expect(log).toEqual(["finalized"])
  }),
)

it.live("a model that is loaded is there on both ports; readiness of the server does not wait for it", () =>
  Effect.gen(function* () {
    const server = yield* Effect.promise(() => Server.start([First], first, free))
    const { index, value, status, isReady } = yield* requestsTo(server)
    expect(yield* status("models/later/ready")).toBe(404)
    const { handler, initializing, initialize, response } = slow()
    yield* Deferred.succeed(response, undefined)
    const loading = server.load([Later], Model.each(Later, handler))
    yield* Deferred.await(initializing)
    expect(yield* status("health/ready")).toBe(200)
    expect(yield* status("models/later/ready")).toBe(400)
    expect(yield* isReady("later")).toBe(false)
    const ready = { name: "first", version: "1", state: "READY", reason: "" }
    expect(yield* index).toEqual([ready, { name: "later", version: "1", state: "LOADING", reason: "" }])
    yield* Deferred.succeed(initialize, undefined)
    yield* Effect.promise(() => loading)
    expect(yield* status("models/later/ready")).toBe(200)
    expect(yield* isReady("later")).toBe(true)
    expect(yield* value("later")).toBe(7)
    expect(yield* index).toEqual([ready, { ...ready, name: "later" }])
    yield* Effect.promise(() => server.unload("later"))
    expect(yield* status("models/later/ready")).toBe(404)
    expect(yield* isReady("later")).toBe(false)
    yield* Effect.promise(() => server.stop())
  }),
)

it.live("a replacement takes over what comes on both ports, what is in flight ends on the old one", () =>
  Effect.gen(function* () {
    const { handler, initialize, entered, response, log } = slow(2)
    yield* Deferred.succeed(initialize, undefined)
    const layer = Layer.merge(first, Model.each(Later, handler, { instances: 2 }))
    // It has been given the model that is replaced, as one of those that the server was started with.
    const server = yield* Effect.promise(() => Server.start([First, Later], layer, free))
    class Asks extends Model.Service<Asks>()("asks", fields) {}
    const calling = Model.each(
      Asks,
      Effect.map(
        Later,
        ({ infer }) =>
          ({ x }) =>
            infer({ x }),
      ),
    )
    yield* Effect.promise(() => server.load([Asks], calling))
    const { value, infer } = yield* requestsTo(server)
    const inFlight = yield* Effect.forkChild(value("later"))
    yield* Deferred.await(entered)
    yield* Effect.promise(() => server.replace([Later], times(3)))
    expect(yield* value("later")).toBe(21)
    expect(yield* value("asks")).toBe(21)
    expect(log).toEqual([])
    yield* Deferred.succeed(response, undefined)
    expect(yield* Fiber.join(inFlight)).toBe(7)
    yield* Effect.promise(() => server.unload("later"))
    expect(log).toEqual(["finalized", "finalized"])
    expect((yield* infer("asks")).overHttp).toMatchObject({ status: 503, tag: "ModelNotReady" })
    yield* Effect.promise(() => server.load([Later], times(5)))
    expect(yield* value("asks")).toBe(35)
    expect(server.models.map(({ description: { name } }) => name)).toEqual(["first", "asks", "later"])
    yield* Effect.promise(() => server.stop())
  }),
)

it.live("no request is lost during repeated replacements, over both ports and from another model", () =>
  Effect.gen(function* () {
    const server = yield* Effect.promise(() => Server.start([Later], times(0), free))
    class Asks extends Model.Service<Asks>()("asks", fields) {}
    const calling = Effect.map(Later, ({ infer }) => infer)
    yield* Effect.promise(() => server.load([Asks], Model.each(Asks, calling)))
    const { infer } = yield* requestsTo(server)
    const over = new AbortController()
    const responses: Array<number> = []
    const client = (name: string) =>
      Effect.gen(function* () {
        while (!over.signal.aborted) {
          const { overHttp, overGrpc } = yield* infer(name)
          expect(overHttp.status, overHttp.text).toBe(200)
          expect(overGrpc).toHaveProperty("response")
          responses.push(JSON.parse(overHttp.text).outputs[0].data[0])
        }
      })
    const clients = yield* Effect.forEach(["later", "asks", "later", "asks"], (name) => Effect.forkChild(client(name)))
    for (let factor = 1; factor <= 20; factor++) {
      const before = responses.length
      yield* Effect.promise(() => server.replace([Later], times(factor)))
      while (responses.length < before + 4) yield* Effect.yieldNow
    }
    over.abort()
    yield* Effect.forEach(clients, Fiber.join)
    expect(new Set(responses).size).toBeGreaterThan(10)
    expect(responses.at(-1)).toBe(140)
    yield* Effect.promise(() => server.stop())
  }),
)

it.live("rejects with the error of a layer, and of a name that is taken", () =>
  Effect.promise(async () => {
    await using server = await Server.start([First], first, free)
    const broken = Model.each(
      Later,
      Effect.as(Effect.fail(new Error("no weights")), ({ x }: { readonly x: number }) => ({ y: x })),
    )
    await expect(server.load([Later], broken)).rejects.toThrow("no weights")
    await expect(server.load([First], first)).rejects.toMatchObject({ _tag: "AlreadyExists" })
    await expect(server.unload("later", { version: 3 })).rejects.toMatchObject({ _tag: "ModelNotFound" })
    expect(server.isReady()).toBe(true)
  }),
)

it("a layer may need what the server was started with, and nothing else", () => {
  class Asks extends Model.Service<Asks>()("asks", fields) {}
  const calling = <I>(model: Context.Key<I, Model.Inference<typeof fields.inputs, typeof fields.outputs>>) =>
    Model.each(
      Asks,
      Effect.map(model, ({ infer }) => infer),
    )
  const changes = async () => {
    const server = await Server.start([First], first, free)
    await server.load([Asks], calling(First))
    // @ts-expect-error it was not started with that
    // @effect-diagnostics-next-line missingLayerContext:off
    await server.load([Asks], calling(Later))
    // @ts-expect-error another model
    await server.replace([Later], first)
  }
  expect(changes).toBeTypeOf("function")
})

it.live("a stop interrupts a load, which fails, and finalizes loaded models", () =>
  Effect.promise(async () => {
    const server = await Server.start([First], first, free)
    const loaded = slow()
    Deferred.doneUnsafe(loaded.initialize, Effect.void)
    await server.load([Later], Model.each(Later, loaded.handler))
    class Other extends Model.Service<Other>()("other", fields) {}
    const { handler, initializing, log } = slow()
    const loading = server.load([Other], Model.each(Other, handler))
    await Effect.runPromise(Deferred.await(initializing))
    const stopped = server.stop()
    await expect(loading).rejects.toMatchObject({ _tag: "Unavailable", message: "Server is stopping" })
    await stopped
    expect([log, loaded.log]).toEqual([["finalized"], ["finalized"]])
    await expect(server.load([Later], times(2))).rejects.toMatchObject({ _tag: "Unavailable" })
  }),
)

it.live("several servers that are built together all have what is loaded, until the last of them stops", () =>
  Effect.gen(function* () {
    const memoMap = Layer.makeMemoMapUnsafe()
    const scope = yield* Scope.Scope
    const build = <A, E>(layer: Layer.Layer<A, E>, its: Scope.Scope) => Layer.buildWithMemoMap(layer, memoMap, its)
    const models = Context.get(yield* build(Registry.layer, scope), Registry)
    yield* models.load([Later], times(2))
    const [oneScope, otherScope] = [yield* Scope.make(), yield* Scope.make()]
    const one = Context.get(yield* build(Server.layer([], free), oneScope), Server.Server)
    const other = Context.get(
      yield* build(Server.layer([First], { ...free, provide: first }), otherScope),
      Server.Server,
    )
    const names = (server: Server.Server["Service"]) => server.models.map(({ description: { name } }) => name)
    expect([names(one), names(other)]).toEqual([["later"], ["first", "later"]])
    yield* models.unload("later")
    expect([names(one), names(other)]).toEqual([[], ["first"]])
    yield* models.load([Later], times(2))
    expect(yield* (yield* requestsTo(other)).value("later")).toBe(14)
    yield* Scope.close(oneScope, Exit.void)
    expect(models.isReady("later")).toBe(true)
    yield* Scope.close(otherScope, Exit.void)
    expect(models.models).toEqual([])
  }),
)

it.live("a family answers each request with its variant, and is ready before any variant is loaded", () =>
  Effect.gen(function* () {
    class Family extends Model.Service<Family>()("family", { ...fields, parameters: { by: Schema.Int } }) {}
    const family = Model.family(Family, {
      key: ({ by }) => String(by),
      layer: (key) =>
        key === "0"
          ? Model.each(Family, Effect.fail(new Errors.InvalidRequest({ message: "there is no variant 0" })))
          : Model.each(Family, ({ x }) => ({ y: x * Number(key) })),
      capacity: 2,
    })
    const server = yield* Effect.promise(() => Server.start([Family], family, free))
    const { call, status } = yield* requestsTo(server)
    expect(yield* status("models/family/ready")).toBe(200)
    const infer = (by: number) =>
      Effect.gen(function* () {
        const message = { ...JSON.parse(body), parameters: { by } }
        const init = { method: "POST", headers: { connection: "close" }, body: JSON.stringify(message) }
        const url = `http://127.0.0.1:${server.http.port}/v2/models/family/infer`
        const overHttp = yield* Effect.promise(async () => (await fetch(url, init)).json())
        const overGrpc = yield* call(modelInfer, {
          modelName: "family",
          parameters: { by: { parameterChoice: { case: "int64Param", value: BigInt(by) } } },
          inputs: [{ name: "x", datatype: "INT32", shape: [1n], contents: { intContents: [7] } }],
        })
        return { overHttp, overGrpc }
      })
    for (const by of [2, 3, 5, 2]) {
      const { overHttp, overGrpc } = yield* infer(by)
      expect(overHttp).toMatchObject({ outputs: [{ data: [7 * by] }] })
      const raw = new Uint8Array(Int32Array.of(7 * by).buffer)
      expect(overGrpc).toMatchObject({ response: { rawOutputContents: [raw] } })
    }
    expect(yield* infer(0)).toEqual({
      overHttp: { error: "there is no variant 0" },
      overGrpc: { code: 3, tag: "InvalidRequest", message: "there is no variant 0" },
    })
    expect(server.models[0]?.description.statistics.inferenceCount).toBe(8)
    yield* Effect.promise(() => server.stop())
  }),
)

it.live(
  "so do models of a repository: they come while the ports are open, and one that cannot recover ends the server",
  () =>
    Effect.gen(function* () {
      const { handler, initializing, initialize } = slow()
      const lost = new Errors.Unrecoverable({ message: "the device is lost" })
      const layer = Model.each(
        Later,
        Effect.as(handler, () => Effect.fail(lost)),
      )
      const open: Open = ({ store }) =>
        Effect.succeed({
          ...noRepository,
          begin: Effect.map(Effect.orDie(Layer.build(layer)), (context) => {
            const { model } = Context.get(context, Later)
            store.serve("later", [ModelVersion.ready(model, "repository")])
          }),
        })
      const ports = yield* somewhere
      const started = Server.start([First], Layer.merge(first, Layer.succeed(ModelRepository, open)), ports)
      yield* Deferred.await(initializing)
      const { status, value } = yield* requestsTo(ports)
      expect([yield* status("health/ready"), yield* status("models/first/ready"), yield* value("first")]).toEqual([
        400, 200, 7,
      ])
      yield* Deferred.succeed(initialize, undefined)
      const server = yield* Effect.promise(() => started)
      expect(yield* status("health/ready")).toBe(200)
      const url = `http://127.0.0.1:${server.http.port}/v2/models/later/infer`
      expect((yield* Effect.promise(() => fetch(url, { method: "POST", body }))).status).toBe(500)
      expect(yield* Effect.promise(() => server.stopped)).toBe(lost)
    }),
)

it.live("an unrecoverable model that was loaded later also ends the server", () =>
  Effect.promise(async () => {
    const server = await Server.start([First], first, free)
    const lost = new Errors.Unrecoverable({ message: "the device is lost" })
    await server.load([Later], times(2))
    await server.replace(
      [Later],
      Model.each(Later, () => Effect.fail(lost)),
    )
    const response = await fetch(`http://127.0.0.1:${server.http.port}/v2/models/later/infer`, { method: "POST", body })
    expect(response.status).toBe(500)
    expect(await server.stopped).toBe(lost)
    expect(server.isReady()).toBe(false)
  }),
)
