/** `Server.layer`: a server as an Effect layer. StartedServer.ts has the API without Effect. */
import { Context, Deferred, Effect, Layer, Scope } from "effect"
import { CacheSettings } from "@nereid/core/internal/cache/CacheSettings"
import type { DeclaredModel } from "@nereid/core/internal/call/ModelClass"
import { ModelRepository } from "@nereid/core/internal/lifecycle/ModelRepository"
import { ModelVersion } from "@nereid/core/internal/lifecycle/ModelVersion"
import * as PlaceholderModel from "@nereid/core/internal/lifecycle/PlaceholderModel"
import { Registry } from "@nereid/core/Registry"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import type { ServeError } from "./error/ServeError.ts"
import { Server } from "./ListeningServer.ts"
import * as Logging from "./log/Logging.ts"
import type { LogControl } from "./log/LogSettings.ts"
import { open } from "./OpenServer.ts"
import type { ProvidedModels } from "./ProvidedModels.ts"
import type { ServerOptions } from "./ServerOptions.ts"

/** Key of a model, such as a class of `Model.Service`. */
export type AnyModel = Context.Key<unknown, { readonly model: RunningModel }>

type Identifiers<M extends ReadonlyArray<AnyModel>> = M[number]["Identifier"]

/** Options of a server that builds its models. */
export interface ProvideOptions<L> extends ServerOptions {
  /**
   * Layer that provides the models. The server builds the layer after it opens the ports, and provides the models
   * itself. Default: the layers around the server build the models before the ports open.
   */
  readonly provide: L
}

/** Layer type of a server: it requires its models, or provides them if the option `provide` is set. */
export type ServerLayer<M extends ReadonlyArray<AnyModel>, L extends Layer.Any | undefined> = L extends Layer.Any
  ? Layer.Layer<Server | Identifiers<M>, ServeError | Layer.Error<L>, Layer.Services<L>>
  : Layer.Layer<Server, ServeError, Identifiers<M>>

/**
 * Serves the models. A model that no layer provides is a compile error.
 *
 * ```ts
 * Server.layer([Digits], { http: 8000, grpc: 8001 }).pipe(Layer.provide(DigitsLive), Layer.launch, NodeRuntime.runMain)
 * ```
 *
 * The models are loaded before the ports open. With the option `provide`, the ports open first:
 *
 * ```ts
 * Server.layer([Digits], { http: 8000, grpc: 8001, provide: DigitsLive }).pipe(Layer.launch, NodeRuntime.runMain)
 * ```
 *
 * While the models load, the server is live but not ready, and refuses requests to them with ModelNotReady (gRPC
 * UNAVAILABLE, HTTP 503). The layer completes after the models are loaded, and provides them together with the server.
 */
export function layer<
  const M extends ReadonlyArray<L extends undefined ? AnyModel : DeclaredModel>,
  L extends Layer.Any | undefined = undefined,
>(
  models: M,
  options?: (ServerOptions & { readonly provide?: never }) | ProvideOptions<L & ProvidedModels<M, L>>,
): ServerLayer<M, L>
export function layer<const M extends ReadonlyArray<DeclaredModel>, E, R>(
  models: M,
  { provide, ...options }: ServerOptions & { readonly provide?: Layer.Layer<Identifiers<M>, E, R> } = {},
): Layer.Layer<Server, ServeError | E, R | Identifiers<M>> {
  return provide === undefined ? layerOfServices(models, options) : layerOfProvided(models, provide, options)
}

/** Builds a server whose models are already built. The ports open while the layer is built. */
const layerOfServices = <const M extends ReadonlyArray<AnyModel>>(
  models: M,
  options: ServerOptions,
): Layer.Layer<Server, ServeError, Identifiers<M>> =>
  Layer.effect(
    Server,
    Effect.gen(function* () {
      const services = yield* Effect.all(models.map((model) => provided<Identifiers<M>>(model)))
      const running = services.map(({ model }) => model)
      const ready = running.map((model) => ModelVersion.ready(model))
      return yield* logged(options, (control) =>
        open(ready, Effect.succeed({ models: running }), { ...options, control }),
      )
    }),
    // Layers are memoized by identity, so the models use this same registry.
  ).pipe(Layer.provide(Registry.layer))

/** Builds a server that opens its ports first, then builds its models. */
export const layerOfProvided = <const M extends ReadonlyArray<DeclaredModel>, E, R>(
  models: M,
  provided: Layer.Layer<Identifiers<M>, E, R>,
  options: ServerOptions,
): Layer.Layer<Server | Identifiers<M>, ServeError | E, R> =>
  Layer.effectContext(
    Effect.gen(function* () {
      const outside = yield* Effect.context<R>()
      const built = Deferred.makeUnsafe<Context.Context<Identifiers<M>>>()
      const load = Layer.build(provided).pipe(
        Effect.tap((context) => Deferred.succeed(built, context)),
        Effect.map((context) => {
          // Prefers the repository of the models' layer over the one of the surrounding context.
          const merged = Context.merge(outside, context)
          return {
            models: models.map((model) => runningOf(context, model)),
            repository: Context.get(merged, ModelRepository),
            cache: Context.get(merged, CacheSettings),
          }
        }),
        // Models log to the loggers of the program, not to those of the server.
        Effect.updateContext((inside: Context.Context<Scope.Scope>) =>
          Context.add(outside, Scope.Scope, Context.get(inside, Scope.Scope)),
        ),
      )
      const expected = models.map(({ definition }) => {
        const version = new ModelVersion({ ...definition, origin: "code" })
        version.begin(PlaceholderModel.make(definition))
        return version
      })
      const server = yield* logged(options, (control) => open(expected, load, { ...options, control }))
      return Context.add(yield* Deferred.await(built), Server, server)
    }),
  ).pipe(Layer.provide(Registry.layer))

const runningOf = <Identifier>(
  context: Context.Context<Identifier>,
  model: Context.Key<Identifier, { readonly model: RunningModel }>,
): RunningModel => Context.get(context, model).model

const logged = <A, E, R>(options: ServerOptions, run: (control: LogControl) => Effect.Effect<A, E, R>) =>
  Effect.flatMap(Logging.current(options.logging ?? {}), (logging) => Logging.through(logging)(run(logging.control)))

/** Narrows the requirement of one model to that of the whole list. */
const provided = <Identifier>(
  model: Context.Key<Identifier, { readonly model: RunningModel }>,
): Effect.Effect<{ readonly model: RunningModel }, never, Identifier> => model
