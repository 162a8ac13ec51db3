/** Why a module does not become the instance of a model. */
import { Data } from "effect"

/** A worker's module cannot be loaded, or does not export a handler. */
export class WorkerLoadError extends Data.TaggedError("WorkerLoadError")<{
  readonly model: string
  /** URL of the module. */
  readonly module: string
  /** Reason, without the names of the model and its module. */
  readonly reason: string
  readonly message: string
}> {}

export const make = (model: string, module: string, reason: string): WorkerLoadError =>
  new WorkerLoadError({ model, module, reason, message: `cannot load model '${model}' from '${module}': ${reason}` })
