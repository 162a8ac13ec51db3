/** The models in Python of a repository, and the Python that each names. Nothing is loaded. */
import { Effect, Result } from "effect"
import { join } from "node:path"
import * as ConfigDefaults from "../config/ConfigDefaults.ts"
import * as PythonBackend from "../config/PythonBackend.ts"
import type { LoadFailure } from "../directory/LoadFailure.ts"
import * as ModelDirectory from "../directory/ModelDirectory.ts"
import * as BackendDirectory from "../plan/BackendDirectory.ts"
import * as ModelPlan from "../plan/ModelPlan.ts"
import * as PythonParameters from "./PythonParameters.ts"

export interface PythonModel {
  readonly name: string
  /** Folder or archive of its Python environment; undefined for the Python of the server. */
  readonly environment: string | undefined
  /** Whether its instances are threads of one process, which needs a free-threaded Python. */
  readonly inThreads: boolean
}

/**
 * Models whose configuration cannot be read are left out; their load reports that. `backendDirectory`: directory of
 * backends in Python, undefined without one.
 */
export const read = Effect.fn("PythonModels.read")(function* (
  directory: string,
  backendDirectory?: string,
): Effect.fn.Return<ReadonlyArray<PythonModel>, LoadFailure> {
  const names = yield* ModelDirectory.models(directory)
  const found = yield* Effect.forEach(names.toSorted(), (name) =>
    Effect.result(modelOf(directory, name, backendDirectory)),
  )
  return found.flatMap((model) => (Result.isSuccess(model) && model.success !== undefined ? [model.success] : []))
})

const modelOf = Effect.fnUntraced(function* (
  directory: string,
  name: string,
  backendDirectory: string | undefined,
): Effect.fn.Return<PythonModel | undefined, LoadFailure> {
  const path = join(directory, name)
  const found = yield* ModelDirectory.read(name, path)
  const written = yield* Effect.fromResult(ModelPlan.written(found))
  const given = ConfigDefaults.identified(written, name, ModelDirectory.fileNames(found))
  const config = yield* BackendDirectory.identified(given, backendDirectory)
  if (!PythonBackend.runsPython(config)) return undefined
  const parameters = PythonParameters.make(config, path)
  const { environment: own = undefined, inThreads = false } = Result.isSuccess(parameters) ? parameters.success : {}
  const backend = PythonBackend.isShared(config) ? BackendDirectory.fileOf(config, backendDirectory) : undefined
  const shared = backend === undefined ? undefined : yield* BackendDirectory.environmentOf(backend)
  return { name, environment: own ?? shared, inThreads }
})
