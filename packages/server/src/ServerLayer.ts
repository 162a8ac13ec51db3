/** A server as a layer. A server for callers without Effect is in StartedServer.ts. */
import { Context, Deferred, Effect, Layer, Scope } from "effect"
import type { DeclaredModel } from "@nereid/core/internal/call/ModelClass"
import { ModelRepository } from "@nereid/core/internal/lifecycle/ModelRepository"
import * as Absent from "@nereid/core/internal/lifecycle/PlaceholderModel"
import { Registry } from "@nereid/core/internal/lifecycle/Registry"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import type { ServeError } from "./error/ServeError.ts"
import { Server } from "./ListeningServer.ts"
import * as Logging from "./log/Logging.ts"
import type { LogControl } from "./log/LogSettings.ts"
import { open } from "./OpenServer.ts"
import type { ServerOptions } from "./ServerOptions.ts"

/** What `Model.Service` makes, and any other key of a model. */
export type AnyModel = Context.Key<unknown, { readonly model: RunningModel }>

/**
 * Serves the models. A model that no layer provides is a compile error.
 *
 * ```ts
 * Server.layer([Digits], { http: 8000, grpc: 8001 }).pipe(Layer.provide(DigitsLive), Layer.launch, NodeRuntime.runMain)
 * ```
 *
 * The models are there before it is: its ports open once they are loaded. Those of `serve` open before.
 */
export const layer = <const M extends ReadonlyArray<AnyModel>>(
  models: M,
  options: ServerOptions = {},
): Layer.Layer<Server, ServeError, M[number]["Identifier"]> =>
  Layer.effect(
    Server,
    Effect.gen(function* () {
      const services = yield* Effect.all(models.map((model) => provided<M[number]["Identifier"]>(model)))
      const running = services.map(({ model }) => model)
      return yield* logged(options, (control) =>
        open(running, Effect.succeed({ models: running }), { ...options, control }),
      )
    }),
    // Memoized by what it is, so this one is also that of the models.
  ).pipe(Layer.provide(Registry.layer))

/**
 * Serves the models of a layer that is built once the ports are open: while they are being loaded, the server is live and not
 * ready, and requests to them are refused as ModelNotReady (gRPC UNAVAILABLE, HTTP 503). It is there once they are, and
 * provides them.
 *
 * ```ts
 * Server.serve([Digits], DigitsLive, { http: 8000, grpc: 8001 }).pipe(Layer.launch, NodeRuntime.runMain)
 * ```
 */
export const serve = <const M extends ReadonlyArray<DeclaredModel>, E, R>(
  models: M,
  provided: Layer.Layer<NoInfer<M[number]["Identifier"]>, E, R>,
  options: ServerOptions = {},
): Layer.Layer<Server | M[number]["Identifier"], ServeError | E, R> =>
  Layer.effectContext(
    Effect.gen(function* () {
      const outside = yield* Effect.context<R>()
      const built = Deferred.makeUnsafe<Context.Context<M[number]["Identifier"]>>()
      const load = Layer.build(provided).pipe(
        Effect.tap((context) => Deferred.succeed(built, context)),
        Effect.map((context) => ({
          models: models.map((model) => runningOf(context, model)),
          // Theirs, or the one around them.
          repository: Context.get(Context.merge(outside, context), ModelRepository),
        })),
        // Their log is the program's, not the server's.
        Effect.updateContext((inside: Context.Context<Scope.Scope>) =>
          Context.add(outside, Scope.Scope, Context.get(inside, Scope.Scope)),
        ),
      )
      const expected = models.map(({ definition }) => Absent.make(definition))
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

/** The need of one model of a list is the need of the list. */
const provided = <Identifier>(
  model: Context.Key<Identifier, { readonly model: RunningModel }>,
): Effect.Effect<{ readonly model: RunningModel }, never, Identifier> => model
