/** A server in the background, for callers without Effect. */
import { Cause, Context, Effect, Exit, Layer, Scope } from "effect"
import type { Unrecoverable } from "@nereid/core/Errors"
import type { DeclaredModel } from "@nereid/core/internal/call/ModelClass"
import * as PromiseCall from "@nereid/core/internal/call/PromiseCall"
import { type Models, Registry, type RetireOptions, type UnloadOptions } from "@nereid/core/Registry"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import { type Address, Server } from "./ListeningServer.ts"
import type { ProvidedModels } from "./ProvidedModels.ts"
import { layerOfProvided } from "./ServerLayer.ts"
import type { Listen, ServerOptions } from "./ServerOptions.ts"

/** The same options, whose types tell which ports there will be. */
export interface StartOptions<
  H extends Listen,
  G extends Listen,
  P extends Listen,
  M extends Listen,
> extends ServerOptions {
  readonly http?: H
  readonly grpc?: G
  readonly port?: P
  readonly metrics?: M
}

type ListensAt<L extends Listen> = L extends false ? undefined : Address

/** One port for everything may be that of HTTP or gRPC, which then has none of its own. */
type OwnPort<L extends Listen, P extends Listen> = P extends false ? ListensAt<L> : ListensAt<L> | undefined

/** A server in the background, for callers without Effect. */
export interface Started<
  H extends Listen,
  G extends Listen,
  P extends Listen,
  M extends Listen,
  Needs = never,
> extends AsyncDisposable {
  /** Where it listens; undefined for what is turned off. */
  readonly http: OwnPort<H, P>
  readonly grpc: OwnPort<G, P>
  /** Of everything on one port. */
  readonly port: ListensAt<P>
  readonly metrics: ListensAt<M>
  readonly models: ReadonlyArray<RunningModel>
  readonly isReady: () => boolean
  /** As Registry's, for layers that need nothing but what it has been started with; rejects with what that fails with. */
  readonly load: <const M extends Models, E>(
    models: M,
    layer: Layer.Layer<NoInfer<M[number]["Identifier"]>, E, Needs>,
  ) => Promise<void>
  readonly replace: <const M extends Models, E>(
    models: M,
    layer: Layer.Layer<NoInfer<M[number]["Identifier"]>, E, Needs>,
    options?: RetireOptions,
  ) => Promise<void>
  readonly unload: (name: string, options?: UnloadOptions) => Promise<void>
  /**
   * Readiness off, listeners close, requests in flight finish (at most `drainTimeout`), models unload; then all ports are
   * free again. Any further call waits for the same stop.
   */
  readonly stop: () => Promise<void>
  /**
   * Fulfilled once it has stopped: with what a model has failed with unrecoverably, where that made it stop by itself; then
   * the process is better ended, `if (await server.stopped) process.exit(1)`.
   */
  readonly stopped: Promise<Unrecoverable | undefined>
}

/**
 * Serves the models in the background, until it is stopped:
 *
 * ```ts
 * await using server = await Server.start([Digits], DigitsLive, { http: 0, grpc: 0 })
 * await fetch(`http://localhost:${server.http.port}/v2/models/digits`)
 * ```
 *
 * A layer that lacks one of the models is a compile error; several are one by `Layer.mergeAll`. Rejects where a model cannot
 * be loaded (with its error) or a port is in use (with a ServeError), and then leaves nothing open. Signals of the process
 * are left to the caller: `process.once("SIGTERM", server.stop)`.
 */
export function start<
  const Models extends ReadonlyArray<DeclaredModel>,
  Provided,
  E,
  const H extends Listen = number,
  const G extends Listen = number,
  const P extends Listen = false,
  const M extends Listen = number,
>(
  models: Models,
  provided: Layer.Layer<Provided, E> & ProvidedModels<Models, Layer.Layer<Provided>>,
  options?: StartOptions<H, G, P, M>,
): Promise<Started<H, G, P, M, Models[number]["Identifier"] | Registry>>
export async function start<
  Models extends ReadonlyArray<DeclaredModel>,
  E,
  H extends Listen,
  G extends Listen,
  P extends Listen,
  M extends Listen,
>(
  models: Models,
  provided: Layer.Layer<Models[number]["Identifier"], E>,
  options: StartOptions<H, G, P, M> = {},
): Promise<Started<H, G, P, M, Models[number]["Identifier"] | Registry>> {
  const scope = Scope.makeUnsafe()
  const close = Effect.suspend(() => Scope.close(scope, Exit.void))
  let stopping: Promise<void> | undefined
  let fatal: Unrecoverable | undefined
  const stopped = Promise.withResolvers<Unrecoverable | undefined>()
  const stop = () => {
    stopping ??= Effect.runPromise(close)
    void stopping.finally(() => stopped.resolve(fatal)).catch(() => {})
    return stopping
  }
  const onUnrecoverable = (error: Unrecoverable) => {
    fatal = error
    void stop().catch(() => {})
    options.onUnrecoverable?.(error)
  }
  const served = Layer.merge(layerOfProvided(models, provided, { ...options, onUnrecoverable }), Registry.layer)
  const exit = await Effect.runPromiseExit(Layer.buildWithScope(served, scope))
  if (Exit.isFailure(exit)) {
    await Effect.runPromiseExit(close)
    throw Cause.squash(exit.cause)
  }
  const context = exit.value
  const server = Context.get(context, Server)
  const { load, replace, unload } = Context.get(context, Registry)
  const { http, grpc, port, metrics, isReady } = server
  return {
    // What is undefined follows from these options, as the types have it.
    http: http as OwnPort<H, P>,
    grpc: grpc as OwnPort<G, P>,
    port: port as ListensAt<P>,
    metrics: metrics as ListensAt<M>,
    get models() {
      return server.models
    },
    isReady,
    load: (models, layer) => PromiseCall.run(load(models, layer), context),
    replace: (models, layer, options) => PromiseCall.run(replace(models, layer, options), context),
    unload: (name, options) => PromiseCall.run(unload(name, options), context),
    stop,
    stopped: stopped.promise,
    [Symbol.asyncDispose]: stop,
  }
}
