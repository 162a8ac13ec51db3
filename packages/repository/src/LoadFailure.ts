/** Why a model, or a version of it, is not there: the reason that the index shows. Never the end of a server by itself. */
import { Data } from "effect"

export class LoadFailure extends Data.TaggedError("LoadFailure")<{
  /** Without the name of the model, which stands beside it wherever it is shown. */
  readonly message: string
  /** Of a failure that is one version's, and not the whole model's. */
  readonly version?: number
}> {}

/** What something failed with, in words. */
export const text = (error: unknown): string => (error instanceof Error ? error.message : String(error))
