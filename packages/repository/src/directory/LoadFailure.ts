/**
 * Why a model, or a version of it, is not there: the reason that the index shows. Never the end of a server by itself.
 */
import { Data, Effect } from "effect"

export class LoadFailure extends Data.TaggedError("LoadFailure")<{
  /** Reason, without the name of the model. */
  readonly message: string
  /** Whether the configuration is wrong, or disagrees with the files. Any other reason is internal. */
  readonly isInvalid?: boolean
  /** Whether the model's directory or configuration is wrong, so that no version was chosen. */
  readonly isUnreadable?: boolean
}> {}

/** Marks a failure that occurs before the versions of the model are chosen. */
export const unreadable = ({ message }: LoadFailure): LoadFailure => new LoadFailure({ message, isUnreadable: true })

export const failure = (message: string): LoadFailure => new LoadFailure({ message })

/** Failure because of a wrong configuration. */
export const invalid = (message: string): LoadFailure => new LoadFailure({ message, isInvalid: true })

export const refuse = (problem: string | undefined): Effect.Effect<void, LoadFailure> =>
  problem === undefined ? Effect.void : Effect.fail(invalid(problem))

/** The reason of a version as Triton writes it, behind the name of its status. */
export const versionReason = ({ message, isInvalid = false }: LoadFailure): string =>
  `${isInvalid ? "Invalid argument" : "Internal"}: ${message}`
