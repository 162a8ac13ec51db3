/** `Server.start`: a server in the background, for callers without Effect. */
import { Cause, Context, Effect, Exit, Layer, Scope } from "effect"
import type { Unrecoverable } from "@nereid/core/Errors"
import type { DeclaredModel } from "@nereid/core/internal/call/ModelClass"
import * as RateLimit from "@nereid/core/internal/limiter/RateLimit"
import * as PromiseCall from "@nereid/core/internal/call/PromiseCall"
import { type Models, Registry, type RetireOptions, type UnloadOptions } from "@nereid/core/Registry"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import { type Address, Server } from "./ListeningServer.ts"
import type { ProvidedModels } from "./ProvidedModels.ts"
import { layerOfProvided } from "./ServerLayer.ts"
import type { Listen, ServerOptions } from "./ServerOptions.ts"

/** ServerOptions whose types record which listeners are on. */
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
  /**
   * Limits the executions of all models, those of repositories included, to those whose resources are free. The same as
   * `RateLimit.layer` around the server. Default: no limits.
   */
  readonly rateLimit?: RateLimit.Options
}

type ListensAt<L extends Listen> = L extends false ? undefined : Address

/** Address of `http` or `grpc`. Undefined at run time if the common port replaces this listener. */
type OwnPort<L extends Listen, P extends Listen> = P extends false ? ListensAt<L> : ListensAt<L> | undefined

/** Handle of a server that `Server.start` started. */
export interface Started<
  H extends Listen,
  G extends Listen,
  P extends Listen,
  M extends Listen,
  Needs = never,
> extends AsyncDisposable {
  /** Address of the HTTP listener; undefined if it is off. The same holds for the three below. */
  readonly http: OwnPort<H, P>
  readonly grpc: OwnPort<G, P>
  /** Address of the listener for all protocols. */
  readonly port: ListensAt<P>
  readonly metrics: ListensAt<M>
  readonly models: ReadonlyArray<RunningModel>
  readonly isReady: () => boolean
  /**
   * Loads models as Registry's `load` does, from a layer that may require the models of this server.
   * Rejects with the error of the layer.
   */
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
   * Stops the server: turns readiness off, closes the listeners, waits up to `drainTimeout` for requests in flight,
   * unloads the models, and frees the ports. Further calls return the same promise.
   */
  readonly stop: () => Promise<void>
  /**
   * Fulfilled after the stop, with the unrecoverable model error that caused it, or undefined. End the process after an
   * unrecoverable error: `if (await server.stopped) process.exit(1)`.
   */
  readonly stopped: Promise<Unrecoverable | undefined>
}

/**
 * Serves the models in the background, until the server is stopped:
 *
 * ```ts
 * await using server = await Server.start([Digits], DigitsLive, { http: 0, grpc: 0 })
 * await fetch(`http://localhost:${server.http.port}/v2/models/digits`)
 * ```
 *
 * The layer must provide every model, or the call does not compile; combine several layers with `Layer.mergeAll`.
 * Rejects with the error of a model that cannot be loaded, or with a ServeError if a port is in use; all ports are then
 * closed. The caller handles signals: `process.once("SIGTERM", server.stop)`.
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
  { rateLimit, ...options }: StartOptions<H, G, P, M> = {},
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
  const served = Layer.merge(layerOfProvided(models, provided, { ...options, onUnrecoverable }), Registry.layer).pipe(
    // Models that are loaded later have it, too.
    Layer.provideMerge(rateLimit === undefined ? Layer.empty : RateLimit.layer(rateLimit)),
  )
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
    // The option types decide which addresses are undefined.
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
