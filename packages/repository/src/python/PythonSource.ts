/** The Python file and the interpreter of one version of a model. */
import { Effect, Result } from "effect"
import { join } from "node:path"
import * as Interpreter from "@nereid/python/internal/environment/Interpreter"
import * as ProcessEnvironment from "@nereid/python/internal/environment/ProcessEnvironment"
import type { ProcessOptions } from "@nereid/python/internal/process/ProcessOptions"
import * as Files from "@nereid/onnx/internal/file/Files"
import type { ModelConfig } from "@nereid/protocol/model_config"
import { failure, invalid, type LoadFailure } from "../directory/LoadFailure.ts"
import * as PythonBackend from "../config/PythonBackend.ts"
import * as BackendDirectory from "../plan/BackendDirectory.ts"
import type { VersionFiles } from "../plan/VersionPlan.ts"
import * as PythonParameters from "./PythonParameters.ts"
import type { PythonOptions } from "../plan/PythonServer.ts"

/** Options of each process of the version. */
export interface PythonSource extends Pick<
  ProcessOptions,
  "model" | "source" | "python" | "environment" | "maxBatchSize" | "concurrency" | "callThreads" | "limits"
> {
  /** Whether all instances are threads of one process. */
  readonly isThreaded: boolean
}

/** Calls of other models at once, by one process, as in Triton. */
const callThreads = 32

/** Characters that Triton refuses in the name of a model in Python. */
const unsafe = /[;|&$`<>()[\]{}\\"'*?~#!]/

/** `path` is the directory of the model. */
export const make = Effect.fn("PythonSource.make")(function* (
  { folder, file }: Pick<VersionFiles, "folder" | "file">,
  path: string,
  config: ModelConfig,
  options: PythonOptions,
): Effect.fn.Return<PythonSource, LoadFailure> {
  const { name, maxBatchSize } = config
  const wrong = unsafe.exec(name)?.[0]
  if (wrong !== undefined) {
    return yield* invalid(`the name '${name}' of a model in Python must not contain the character ${wrong}`)
  }
  if (!file.endsWith(".py")) return yield* invalid(`the name of a Python model's file must end in .py: '${file}'`)
  const kind = yield* Effect.mapError(Files.kind(file), ({ code, message }) =>
    failure(code === "ENOENT" || code === "ENOTDIR" ? notFound(file) : `cannot read ${file}: ${message}`),
  )
  if (kind !== "file") return yield* failure(notFound(file))
  yield* warnOfStub(path, folder)
  const parameters = yield* Effect.mapError(Effect.fromResult(PythonParameters.make(config, path)), invalid)
  const shared = PythonBackend.isShared(config) ? yield* BackendDirectory.environmentOf(file) : undefined
  const environment = parameters.environment ?? shared
  const interpreter = yield* Effect.mapError(Interpreter.find(environment), ({ message }) => failure(message))
  const lock = parameters.inThreads ? Interpreter.threadsProblem(interpreter) : undefined
  if (lock !== undefined) return yield* failure(lock)
  if (environment !== undefined) yield* Effect.logInfo(`Using Python execution env ${environment}`)
  return {
    model: name,
    source: { file, module: undefined, functionName: undefined, versionDirectory: folder, modelDirectory: path },
    python: interpreter.executable,
    environment: ProcessEnvironment.make({
      from: process.env,
      inherit: [...(options.inheritEnv ?? []), ...parameters.inheritEnv],
      interpreter: interpreter.variables,
      own: {},
    }),
    maxBatchSize,
    concurrency: parameters.concurrency,
    callThreads: options.callThreads ?? callThreads,
    limits: parameters.limits,
    isThreaded: parameters.inThreads,
  }
})

/** A stub that was compiled for another Python is of no use: the interpreter itself is started. */
const warnOfStub = (path: string, folder: string): Effect.Effect<void> =>
  Effect.forEach(
    [path, folder],
    (directory) => {
      const stub = join(directory, "triton_python_backend_stub")
      const warning = `${stub} is not used: the interpreter of the environment is started itself`
      return Effect.flatMap(Effect.result(Files.kind(stub)), (kind) =>
        Result.isSuccess(kind) ? Effect.logWarning(warning) : Effect.void,
      )
    },
    { discard: true },
  )

/** In the words of Triton. */
const notFound = (file: string) => `Failed to preinitialize Python stub: Python model file not found in '${file}'`
