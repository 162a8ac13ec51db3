/**
 * `nereid serve [module] [--model-repository DIR]…`: serves the models of a module and of repositories until it is
 * stopped.
 */
import { Repository } from "@nereid/repository"
import { Logging, ServeError, Server } from "@nereid/server"
import { Console, Effect, Layer, Option } from "effect"
import { Argument, CliError, Command } from "effect/cli"
import * as Banner from "./Banner.ts"
import { inOneLine } from "./module/Failure.ts"
import * as ForcedExit from "./ForcedExit.ts"
import * as ModelModule from "./module/ModelModule.ts"
import * as UnhandledErrors from "./UnhandledErrors.ts"
import * as Telemetry from "./Telemetry.ts"
import * as RepositoryFlags from "./flags/RepositoryFlags.ts"
import * as ServerFlags from "./flags/ServerFlags.ts"
import * as Variables from "./flags/Variables.ts"

/** Shows the state of all models after a failed start, because the errors name only the failed ones. */
const showModels = (error: unknown) =>
  error instanceof ServeError && error.found !== undefined
    ? Console.log(`${Banner.models(error.found)}\n`)
    : Effect.void

export const serve = Command.make(
  "serve",
  {
    module: Argument.String("module").pipe(
      Argument.withDescription(
        "A TypeScript or JavaScript module that exports models and the layers that provide them; may be left out where there is a model repository",
      ),
      Argument.optional,
    ),
    flags: ServerFlags.flags,
  },
  Effect.fnUntraced(function* ({ module: path, flags }) {
    yield* Variables.refuseUnknown
    const options = yield* ServerFlags.options(flags)
    const telemetry = yield* Telemetry.layer(options.id ?? "nereid", process.env)
    const repository = yield* RepositoryFlags.options(flags.repository)
    if (Option.isNone(path) && repository === undefined) {
      const cause = "there is nothing to serve: give a module that exports models, or --model-repository=DIR, or both"
      return yield* new CliError.UserError({ cause })
    }
    const ignored = ServerFlags.ignored(flags)
    if (ignored.length > 0) yield* Console.error(`Without effect here: ${ignored.join(", ")}`)
    const forcedExit = ForcedExit.install(flags.general.exitTimeout)
    const module = Option.isNone(path) ? ModelModule.none : yield* ModelModule.load(path.value)
    const models = Layer.effectContext(ModelModule.build(module))
    const stored = repository === undefined ? Layer.empty : Repository.layer(repository)
    const stop = (reason: string) => {
      process.exitCode = 1
      forcedExit.stop(reason)
    }
    const served = Server.layer(module.models, {
      ...options,
      provide: models,
      routes: module.routes,
      onDrainTimeout: () => void (process.exitCode = 1),
      onUnrecoverable: () => stop("a model cannot recover"),
    }).pipe(Layer.provide(stored))
    const announced = Layer.effectDiscard(
      Effect.flatMap(Server.Server, (server) => Console.log(Banner.banner(server, options.tls))),
    ).pipe(Layer.provide(served))
    return yield* announced.pipe(
      Layer.provide(UnhandledErrors.layer(stop)),
      Layer.provide(telemetry),
      Layer.provide(Logging.layer(options.logging)),
      Layer.launch,
      Effect.tapError(showModels),
    )
  }, Effect.mapError(inOneLine)),
).pipe(
  Command.withDescription(
    "Serve the models that a module exports, those of a model repository, or both. Each flag may be an environment variable instead: NEREID_HTTP_PORT for --http-port",
  ),
)
