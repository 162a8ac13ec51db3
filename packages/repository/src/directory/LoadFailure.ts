/** Why a model, or a version of it, is not there: the reason that the index shows. Never the end of a server by itself. */
import { Data, Effect } from "effect"

export class LoadFailure extends Data.TaggedError("LoadFailure")<{
  /** Without the name of the model, which stands beside it wherever it is shown. */
  readonly message: string
  /** Of a failure that is one version's, and not the whole model's. */
  readonly version?: number
}> {}

/** Of the whole model. */
export const failure = (message: string): LoadFailure => new LoadFailure({ message })

export const refuse = (problem: string | undefined): Effect.Effect<void, LoadFailure> =>
  problem === undefined ? Effect.void : Effect.fail(failure(problem))
