/**
 * The servers of the cases, on free ports, with the models of Models.ts. Four servers have the same models: one with
 * default options, one with gRPC inference through Connect, one with small limits, and one with all optional features.
 * All but the second also run with HTTP and gRPC on one port. Others serve a repository: that of StoredModels.ts, or
 * that of StoredQueues.ts.
 */
import { Context, Effect, Layer } from "effect"
import { Server } from "@nereid/server"
import * as Models from "./Models.ts"
import * as StoredModels from "./StoredModels.ts"
import * as StoredQueues from "./StoredQueues.ts"

/** Server that a case requires; default the normal one. */
export type ServerName = "normal" | "small" | "guarded" | "stored"

export interface Ports {
  readonly http: number
  readonly grpc: number
  readonly metrics: number
}

const free = { host: "127.0.0.1", port: 0 }

const onePort = { http: false, grpc: false, port: free } as const

const listen = <const M extends ReadonlyArray<Server.AnyModel>>(models: M, options: Server.ServerOptions) =>
  Effect.map(Layer.build(Server.layer(models, { http: free, grpc: free, metrics: free, ...options })), (context) => {
    const { http, grpc, port, metrics } = Context.get(context, Server.Server)
    return { http: (http ?? port)?.port ?? 0, grpc: (grpc ?? port)?.port ?? 0, metrics: metrics?.port ?? 0 }
  })

/** One server for both, as its models are many: on two ports, and on one beside them. */
const stored = Effect.gen(function* () {
  const repository = yield* Layer.build(StoredModels.layer)
  const served = Server.layer([], { http: free, grpc: free, port: free, metrics: free })
  const context = yield* Effect.provideContext(Layer.build(served), repository)
  const { http, grpc, port, metrics } = Context.get(context, Server.Server)
  const on = (ports: { http: number; grpc: number }) => ({ ...ports, metrics: metrics?.port ?? 0 })
  const [own, one] = [{ http: http?.port ?? 0, grpc: grpc?.port ?? 0 }, port?.port ?? 0]
  return { stored: on(own), storedOnOne: on({ http: one, grpc: one }) }
})

/** Each server loads the repository for itself: no model is in both. */
const queues = Effect.gen(function* () {
  const repository = yield* Layer.build(StoredQueues.layer)
  return yield* Effect.provideContext(
    Effect.all({ queues: listen([], {}), queuesConnect: listen([], { fastInference: false }) }),
    repository,
  )
})

/** In bytes, of the server with small limits. */
export const smallLimit = 2048

/** The header that restricted APIs want. */
export const secret = { key: "admin-key", value: "secret" }

/** The origin that CORS allows. */
export const origin = "https://app.example.com"

const restrictions = [{ apis: ["model-repository", "statistics", "logging"], ...secret }] as const

const small: Server.ServerOptions = { maxInputSize: smallLimit, maxMessageSize: smallLimit }

const guarded: Server.ServerOptions = {
  restrictedApis: { http: restrictions, grpc: restrictions },
  forwardHeaders: { http: "^x-forward-|^priority$", grpc: "^x-forward-" },
  allowClientSharedMemory: true,
  cors: { origins: [origin] },
  responseCompression: "low",
}

export class ServerUnderTest extends Context.Service<
  ServerUnderTest,
  {
    readonly normal: Ports
    /** With `fastInference: false`. */
    readonly connect: Ports
    /** Takes no larger body or message than `smallLimit`, and one of its models is not ready. */
    readonly small: Ports
    /** Forwards headers, restricts APIs, allows shared memory and pages of one origin, compresses its answers. */
    readonly guarded: Ports
    readonly normalOnOne: Ports
    readonly smallOnOne: Ports
    readonly guardedOnOne: Ports
    /** Serves a repository that callers may load from. */
    readonly stored: Ports
    readonly storedOnOne: Ports
    /** Has models of a repository that wait and share batches. */
    readonly queues: Ports
    /** The same models once more, with `fastInference: false`. */
    readonly queuesConnect: Ports
  }
>()("conformance/ServerUnderTest") {
  /** Without repositories, whose servers are nowhere then: their models take a while. */
  static readonly layer = Layer.effect(
    ServerUnderTest,
    Effect.suspend(() => Effect.map(inCode, (servers) => ({ ...noStored, ...noQueues, ...servers }))),
  ).pipe(Layer.provide(Models.layer))

  static readonly layerWithRepository = Layer.effect(
    ServerUnderTest,
    Effect.suspend(() =>
      Effect.zipWith(inCode, stored, (servers, repository) => ({ ...noQueues, ...servers, ...repository })),
    ),
  ).pipe(Layer.provide(Models.layer))

  static readonly layerWithQueues = Layer.effect(
    ServerUnderTest,
    Effect.suspend(() =>
      Effect.zipWith(inCode, queues, (servers, repository) => ({ ...noStored, ...servers, ...repository })),
    ),
  ).pipe(Layer.provide(Models.layer))
}

const nowhere: Ports = { http: 0, grpc: 0, metrics: 0 }

const noStored = { stored: nowhere, storedOnOne: nowhere }

const noQueues = { queues: nowhere, queuesConnect: nowhere }

const inCode = Effect.all({
  normal: listen(Models.models, {}),
  connect: listen(Models.models, { fastInference: false }),
  small: listen([...Models.models, Models.stopped], small),
  guarded: listen(Models.models, guarded),
  normalOnOne: listen(Models.models, onePort),
  smallOnOne: listen([...Models.models, Models.stopped], { ...small, ...onePort }),
  guardedOnOne: listen(Models.models, { ...guarded, ...onePort }),
})
