/** Backends in Python of the backend directory: each is a folder with a `model.py`. The messages are Triton's. */
import * as Files from "@nereid/onnx/internal/file/Files"
import type { ModelConfig } from "@nereid/protocol/model_config"
import { Effect } from "effect"
import { dirname, join, resolve } from "node:path"
import * as PythonBackend from "../config/PythonBackend.ts"
import { invalid, type LoadFailure, refuse } from "../directory/LoadFailure.ts"
import * as ModelDirectory from "../directory/ModelDirectory.ts"

/** Fills in the runtime of a model whose backend has a file. The name of the backend must not lead elsewhere. */
export const identified = Effect.fnUntraced(function* (
  config: ModelConfig,
  directory: string | undefined,
): Effect.fn.Return<ModelConfig, LoadFailure> {
  if (!PythonBackend.isElsewhere(config)) return config
  yield* refuse(PythonBackend.nameProblem(config))
  if (directory === undefined || config.runtime !== "") return config
  const isThere = yield* isFile(PythonBackend.fileOf(resolve(directory), config))
  return isThere ? { ...config, runtime: PythonBackend.runtime } : config
})

/** The file of a backend; undefined without a directory. */
export const fileOf = (config: ModelConfig, directory: string | undefined): string | undefined =>
  directory === undefined ? undefined : PythonBackend.fileOf(resolve(directory), config)

/** Changes with any file of the backend. */
export const stampOf = (file: string): Effect.Effect<string> =>
  Effect.catch(ModelDirectory.stamp(dirname(file)), ({ message }) => Effect.succeed(message))

/** Fails unless the backend of a model has a file. */
export const check = Effect.fnUntraced(function* (
  config: ModelConfig,
  directory: string | undefined,
): Effect.fn.Return<void, LoadFailure> {
  const file = fileOf(config, directory)
  if (file !== undefined && (yield* isFile(file))) return
  const { runtime } = PythonBackend
  const missing = `unable to find Python backend based backend library '${runtime}' for model '${config.name}'`
  const reason = file === undefined ? ": the server has no backend directory" : `, searched: '${file}'`
  return yield* invalid(missing + reason)
})

/**
 * The archive of conda-pack beside the file of a backend, with the Python of its models; undefined if there is none. A
 * model may name another one.
 */
export const environmentOf = (file: string): Effect.Effect<string | undefined> => {
  const archive = join(dirname(file), `pb_exec_env_${PythonBackend.runtime}.tar.gz`)
  return Effect.map(isFile(archive), (isThere) => (isThere ? archive : undefined))
}

const isFile = (path: string): Effect.Effect<boolean> =>
  Files.kind(path).pipe(
    Effect.map((kind) => kind === "file"),
    Effect.orElseSucceed(() => false),
  )
