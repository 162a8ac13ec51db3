/**
 * Serves models from directories in Triton's layout: finds them, decides when to load them, and handles requests to
 * load and unload. catalogue/StoredModel.ts manages one model.
 */
import { Duration, Effect, Layer, Result, Scope } from "effect"
import { tmpdir } from "node:os"
import { ExecutionFailed, InvalidRequest, Unavailable } from "@nereid/core/Errors"
import {
  type Control,
  type LoadOverrides,
  ModelRepository,
  type Open,
  type OpenRepository,
  RepositoryError,
} from "@nereid/core/internal/lifecycle/ModelRepository"
import type { RegisteredModels } from "@nereid/core/internal/lifecycle/ModelLookup"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import * as Files from "@nereid/onnx/internal/file/Files"
import { Catalogue } from "./catalogue/Catalogue.ts"
import * as AbandonedDirectories from "./directory/AbandonedDirectories.ts"
import type { LoadFailure } from "./directory/LoadFailure.ts"
import * as ModelName from "./directory/ModelName.ts"
import * as Repositories from "./mirror/Repositories.ts"
import type { StorageOptions } from "./mirror/StorageOptions.ts"
import type { PythonOptions } from "./plan/PythonServer.ts"

export type { StorageOptions } from "./mirror/StorageOptions.ts"
export type { PythonOptions } from "./plan/PythonServer.ts"

/** Directories of models, and how their models are loaded. */
export interface Options {
  /**
   * Directories to serve, with a subdirectory for each model: paths, or URLs of object storage (`s3://`, `gs://`,
   * `as://`) or of a model on Hugging Face (`hf://`). A name that two directories have is loaded from neither, unless
   * `namespaces` is set.
   */
  readonly directories: readonly [string, ...ReadonlyArray<string>]
  /**
   * Loading of models. `none`: all models are loaded at the start. `explicit`: the models of `load` are loaded at the
   * start, and clients load and unload models later. `poll`: all models are loaded, and later changes are followed.
   * Default `none`.
   */
  readonly control?: "none" | "explicit" | "poll"
  /** Models to load at the start with `explicit`; `*` alone loads all. Default: none. */
  readonly load?: ReadonlyArray<string>
  /** Interval between scans of the directories with `poll`; 0 disables them. Default 15 seconds. */
  readonly pollInterval?: Duration.Input
  /** Name of an alternative configuration: a model with a file `configs/<name>.pbtxt` uses it. Default: none. */
  readonly configName?: string
  /** Completes configurations from model files. Default true. */
  readonly autoComplete?: boolean
  /** Maximum batch size, in rows, of a model that supports batching and whose configuration sets none. Default 4. */
  readonly defaultMaxBatchSize?: number
  /**
   * Time without batches after which an ONNX model ends the threads of its instances and frees their memory; the next
   * batch starts them. The parameter `idle_timeout_seconds` of a configuration overrides it. Default 0: never.
   */
  readonly idleTimeout?: Duration.Input
  /**
   * Serves the versions of a model that can be loaded although others cannot. Requests without a version then reach an
   * older version than intended. Default false: the load of the model fails as a whole.
   */
  readonly partialModelLoad?: boolean
  /**
   * Allows models of one name in different directories: a name is unique in its directory only. Ensembles prefer models
   * of their own directory. Requests for a name that several loaded models have are refused. Default false.
   */
  readonly namespaces?: boolean
  /** Settings of repositories in object storage. */
  readonly storage?: StorageOptions
  /** Settings of models in Python. */
  readonly python?: PythonOptions
  /**
   * Name under which a directory is served that is a model itself: that holds an ONNX file, a `config.pbtxt`, or
   * versions only. Default: each subdirectory is a model.
   */
  readonly singleModel?: string
  /**
   * Fails the start if a directory cannot be read or a model cannot be loaded. Otherwise, the server of an unreadable
   * directory is not live. Default true.
   */
  readonly exitOnError?: boolean
}

/**
 * Makes servers built with this layer serve the models of these directories, in addition to the models in code:
 *
 * ```ts
 * Server.layer([], { http: 8000 }).pipe(Layer.provide(Repository.layer({ directories: ["models"] })))
 * ```
 */
export const layer = (options: Options): Layer.Layer<never> => Layer.succeed(ModelRepository, open(options))

/** Returns the same as `layer`, as a function of the server that loads the models. */
export const open = (options: Options): Open => {
  // The thread starts while the server does.
  Files.prepare()
  return (server) =>
    Effect.gen(function* () {
      const { control = "none", load: startModels = [], exitOnError = true } = options
      const { store } = server
      yield* Effect.forkScoped(AbandonedDirectories.remove(tmpdir()))
      const inCode = new Set(store.models.map(({ description }) => description.name))
      const opened = yield* Effect.result(Repositories.open(options.directories, options.singleModel, options.storage))
      if (Result.isFailure(opened)) return yield* new RepositoryError({ message: opened.failure.message })
      const catalogue = new Catalogue(opened.success, options, server, yield* Scope.Scope)
      yield* Effect.acquireRelease(
        Effect.sync(() => store.onChange(catalogue.review)),
        (stop) => Effect.sync(stop),
      )
      if (control === "explicit") {
        catalogue.control = yield* controlOf(catalogue, (name) => (inCode.has(name) ? store.versions(name) : []))
      }
      const scanned = yield* Effect.result(Effect.andThen(catalogue.refresh, catalogue.scan))
      if (Result.isFailure(scanned)) {
        const { message } = scanned.failure
        if (exitOnError) return yield* new RepositoryError({ message })
        yield* Effect.logError(`The server has no model repository: ${message}`)
        return unavailable
      }
      const found = scanned.success
      const isAll = control !== "explicit" || (startModels.length === 1 && startModels[0] === "*")
      const repository: OpenRepository = {
        begin: Effect.gen(function* () {
          const names = isAll ? [...found.keys()] : yield* named(catalogue, startModels)
          const problems = yield* loadAll(catalogue, names)
          if (exitOnError && problems.length > 0) {
            const message = `failed to load all models\n${problems.map((problem) => `  ${problem}`).join("\n")}`
            return yield* new RepositoryError({ message })
          }
          const interval = Duration.fromInputUnsafe(options.pollInterval ?? "15 seconds")
          if (control === "poll" && Duration.isPositive(interval)) yield* poll(catalogue, interval)
          else Files.release()
        }),
        refresh: control === "explicit" ? Effect.ignore(catalogue.scanForIndex) : Effect.void,
        index: () => catalogue.index(control === "explicit"),
        isLive: () => true,
        isReady: () => catalogue.isReady(),
        mode: control,
        control: catalogue.control,
      }
      return repository
    })
}

const notReady = Effect.fail(new Unavailable({ message: "Server not ready" }))

/** A repository whose directories cannot be read. */
const unavailable: OpenRepository = {
  begin: Effect.void,
  refresh: notReady,
  index: () => [],
  isLive: () => false,
  isReady: () => false,
  mode: "explicit",
  control: { load: () => notReady, unload: () => notReady },
}

/** Ids of the models with these names. */
const named = (catalogue: Catalogue, names: ReadonlyArray<string>) =>
  Effect.forEach(names, (name) => catalogue.ids(name)).pipe(
    Effect.map((ids) => [...new Set(ids.flat())]),
    Effect.mapError(({ message }) => new RepositoryError({ message })),
  )

/** Loads models, logs each failure, and returns the error messages. */
const loadAll = Effect.fn("Repository.loadAll")(function* (catalogue: Catalogue, names: ReadonlyArray<string>) {
  const problems = yield* Effect.match(catalogue.load(names, noOverrides), {
    onFailure: ({ message }) => [message],
    onSuccess: (results) =>
      [...results].flatMap(([name, result]) =>
        Result.isFailure(result) ? [`${ModelName.shown(name)}: ${result.failure.message}`] : [],
      ),
  })
  for (const problem of problems) yield* Effect.logError(`Failed to load model ${problem}`)
  return problems
})

/** Polls the directories until the scope closes. */
const poll = (catalogue: Catalogue, interval: Duration.Duration) =>
  catalogue.changes.pipe(
    Effect.tap(({ gone }) =>
      Effect.forEach(gone, (name) => Effect.andThen(catalogue.forget(name), logUnloaded(name)), { discard: true }),
    ),
    // Neither of two directories is the right one.
    Effect.tap(({ ambiguous }) =>
      Effect.forEach(ambiguous, (name) => Effect.andThen(catalogue.unload(name, false), logUnloaded(name)), {
        discard: true,
      }),
    ),
    Effect.flatMap(({ changed }) => Effect.flatMap(catalogue.load(changed, noOverrides), logResults)),
    Effect.catch(({ message }) => Effect.logError(`Cannot read the model repository: ${message}`)),
    Effect.delay(interval),
    Effect.forever,
    Effect.forkScoped,
  )

const noOverrides: LoadOverrides = { files: new Map() }

/** Returns the control for clients. Its effects run with the server's context. */
const controlOf = Effect.fnUntraced(function* (catalogue: Catalogue, inCode: RegisteredModels["versions"]) {
  const context = yield* Effect.context<never>()
  const control: Control = {
    load: (name, overrides) =>
      nameProblem(name).pipe(Effect.andThen(loadNamed(catalogue, name, overrides)), Effect.provideContext(context)),
    unload: (name, dependents) =>
      nameProblem(name).pipe(
        Effect.andThen(Effect.mapError(catalogue.ids(name), (error) => refused(name, error))),
        Effect.flatMap((ids) => Effect.forEach(ids, (id) => catalogue.unload(id, dependents), { discard: true })),
        Effect.andThen(checkNotInCode(name, inCode(name))),
        Effect.andThen(logUnloaded(name)),
        Effect.provideContext(context),
      ),
  }
  return control
})

/** Loads the models of a name and fails with the first error. */
const loadNamed = Effect.fn("Repository.load")(function* (
  catalogue: Catalogue,
  name: string,
  overrides: LoadOverrides,
) {
  const ids = yield* Effect.mapError(Effect.andThen(catalogue.refresh, catalogue.ids(name)), (error) =>
    refused(name, error),
  )
  if (ids.length > 1 && overrides.files.size > 0) {
    const message = `There are ${ids.length} identifiers of model '${name}', the files are of one of them`
    return yield* new InvalidRequest({ message })
  }
  const results = yield* Effect.mapError(catalogue.load(ids, overrides), (error) =>
    error._tag === "LoadFailure" ? refused(name, error) : error,
  )
  yield* logResults(results)
  for (const id of ids) {
    const result = results.get(id) ?? Result.void
    if (Result.isSuccess(result)) continue
    return yield* result.failure._tag === "LoadFailure" ? refused(id, result.failure) : result.failure
  }
})

/** Fails for a model in code, which clients cannot unload. */
const checkNotInCode = (name: string, inCode: ReadonlyArray<RunningModel>): Effect.Effect<void, ExecutionFailed> => {
  if (inCode.length === 0) return Effect.void
  const available = `versions that are still available: ${inCode.map(({ description: { version } }) => version).join(",")}`
  return Effect.fail(
    new ExecutionFailed({ message: `failed to unload '${name}', ${available}: the model is defined in code` }),
  )
}

/** Logs the result for each model. Not used at the start, which ends with a table of all models. */
const logResults = (results: ReadonlyMap<string, Result.Result<void, { readonly message: string }>>) =>
  Effect.forEach(
    results,
    ([name, result]) =>
      Result.isFailure(result)
        ? Effect.logError(`Failed to load model ${ModelName.shown(name)}: ${result.failure.message}`)
        : Effect.logInfo(`Model '${name}' is loaded`),
    { discard: true },
  )

const logUnloaded = (name: string) => Effect.logInfo(`Model '${ModelName.shown(name)}' is unloaded`)

/** Triton's messages. It logs the reason of an unreadable model only. */
const refused = (name: string, { message, isUnreadable }: LoadFailure) =>
  new InvalidRequest({
    message:
      isUnreadable === true
        ? `failed to load '${name}', failed to poll from model repository: ${message}`
        : `load failed for model '${name}': ${message}`,
  })

const nameProblem = (name: string): Effect.Effect<void, InvalidRequest> => {
  const trimmed = name.trim()
  if (trimmed === "") {
    return Effect.fail(
      new InvalidRequest({ message: "Model name cannot be empty. Please enter a valid name to deploy." }),
    )
  }
  const isPath = /[/\\]/.test(name) || trimmed === "." || trimmed === ".."
  const message = `invalid model name '${name}', model name must not contain path traversal characters`
  return isPath ? Effect.fail(new InvalidRequest({ message })) : Effect.void
}
