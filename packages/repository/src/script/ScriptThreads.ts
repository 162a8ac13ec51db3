/**
 * Runs the instances of a script in worker threads, so that their computation does not block other models. thread.ts is
 * the module of the threads.
 */
import { fromBinary, toBinary } from "@bufbuild/protobuf"
import { Effect, Layer, Result } from "effect"
import type { GroupOptions } from "@nereid/core/internal/instance/InstancePlan"
import type { Sequencing } from "@nereid/core/internal/model/Sequencing"
import type { ServingOptions } from "@nereid/core/internal/provide/Provide"
import { type ModelConfig, ModelConfigSchema } from "@nereid/protocol/model_config"
import { Worker } from "@nereid/worker"
import type { RepositoryModelClass } from "../config/Declaration.ts"
import { LoadFailure } from "../directory/LoadFailure.ts"
import type { VersionPlan } from "../plan/VersionPlan.ts"

const parameter = "worker_threads"

/** Whether the configuration requests threads, or an error if it is invalid. */
export const isWanted = ({ parameters }: ModelConfig): Result.Result<boolean, string> => {
  const text = parameters[parameter]?.stringValue.trim() ?? "false"
  if (text === "true" || text === "false") return Result.succeed(text === "true")
  return Result.fail(`parameter '${parameter}' must be true or false, but '${text}' was given`)
}

/** Provides the model. Only the threads import the script, and detect whether it is one. */
export const layer = (
  { config, path, labels, version, folder, file, stamp, sequencing }: VersionPlan,
  realPath: string,
  declared: RepositoryModelClass,
  options: ServingOptions & { readonly instances: ReadonlyArray<GroupOptions> },
): Layer.Layer<unknown, { readonly message: string }> => {
  const data: ScriptData = {
    config: toBinary(ModelConfigSchema, config),
    path,
    labels,
    version,
    folder,
    file,
    stamp,
    realPath,
    sequencing: sequencing && cloneable(sequencing),
  }
  const built = Layer.build(
    Worker.layer()(declared, import.meta.resolve("@nereid/repository/internal/script/thread"), { ...options, data }),
  )
  return Layer.effectContext(
    Effect.mapError(built, (error) => (error instanceof Worker.WorkerLoadError ? failure(error) : error)),
  )
}

/** Omits the name of the thread's internal module; errors name the imported module. */
const failure = ({ reason }: Worker.WorkerLoadError) => new LoadFailure({ message: reason })

/** Without initial states, which the main thread gives to the first requests. */
const cloneable = (sequencing: Sequencing): Sequencing => ({
  ...sequencing,
  states: sequencing.states.map((state) => ({ ...state, initial: undefined })),
})

/** The start data of a thread. */
interface ScriptData extends Omit<VersionPlan, "config" | "warmUp" | "idleSeconds"> {
  /** A message, which as an object could not be cloned. */
  readonly config: Uint8Array
  /** Path of the file without links. */
  readonly realPath: string
}

/** Returns the plan of the script in the thread, from the data that `layer` passed. */
export const planOf = (data: unknown) => {
  const { config, ...others } = data as ScriptData
  return { ...others, config: fromBinary(ModelConfigSchema, config) } satisfies Omit<
    VersionPlan,
    "warmUp" | "idleSeconds"
  >
}
