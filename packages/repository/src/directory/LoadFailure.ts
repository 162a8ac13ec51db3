/**
 * Why a model, or a version of it, is not there: the reason that the index shows. Never the end of a server by itself.
 */
import { Data, Effect } from "effect"

export class LoadFailure extends Data.TaggedError("LoadFailure")<{
  /** Reason, without the name of the model. */
  readonly message: string
  /** Version that failed; absent if the whole model failed. */
  readonly version?: number
  /** Whether the model's directory or configuration is wrong, so that no version was chosen. */
  readonly isUnreadable?: boolean
}> {}

/** Marks a failure that occurs before the versions of the model are chosen. */
export const unreadable = ({ message }: LoadFailure): LoadFailure => new LoadFailure({ message, isUnreadable: true })

/** Failure of the whole model. */
export const failure = (message: string): LoadFailure => new LoadFailure({ message })

export const refuse = (problem: string | undefined): Effect.Effect<void, LoadFailure> =>
  problem === undefined ? Effect.void : Effect.fail(failure(problem))
