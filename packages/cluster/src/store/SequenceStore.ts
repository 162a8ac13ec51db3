/**
 * Storage for the states of sequences on their way from one runner to another, or beside a runner that may die.
 * SqlStore.ts keeps them in a database, MemoryStore.ts in this process.
 */
import { Context, Data, type Effect } from "effect"

/** The storage failed, or cannot be reached. */
export class SequenceStoreError extends Data.TaggedError("SequenceStoreError")<{
  readonly message: string
  readonly cause: unknown
}> {}

/** Another runner owns the part now. */
export class StoreTaken extends Data.TaggedError("StoreTaken")<{ readonly message: string }> {}

/** How long a sequence is stored after it has expired, in milliseconds. */
export const expiredFor = 10 * 60_000

/** One sequence at rest. */
export interface StoredSequence {
  /** Datatype and id: `UINT64 5` or `BYTES five`. */
  readonly id: string
  /** The sequence as the JSON document of an export; undefined if it has ended. */
  readonly state: string | undefined
  /** The last call that was executed; undefined if none is known. */
  readonly lastCall: string | undefined
  /** The response to that call, as base64; undefined if it was not kept. */
  readonly lastReply: string | undefined
  /** When the sequence expires, in milliseconds since 1970; infinite for never. */
  readonly expiresAt: number
}

/** A part of a model's sequences, and who owns it. */
export interface OwnedPart {
  readonly model: string
  readonly part: number
  /** Names one owner of one part, from its activation to its end. */
  readonly owner: string
}

/**
 * Sequences by model and part. An owner that was replaced, such as a process that was frozen for a while, can write
 * nothing more: its changes fail with StoreTaken.
 */
export class SequenceStore extends Context.Service<
  SequenceStore,
  {
    /**
     * Makes this owner the only one that writes. Returns all sequences of the part, also those that have expired not
     * longer than `expiredFor` ago, so that their callers are told so.
     */
    readonly take: (owned: OwnedPart) => Effect.Effect<ReadonlyArray<StoredSequence>, SequenceStoreError>
    /** Adds or replaces sequences: all of them, or none if it fails. */
    readonly put: (
      owned: OwnedPart,
      sequences: ReadonlyArray<StoredSequence>,
    ) => Effect.Effect<void, SequenceStoreError | StoreTaken>
    readonly remove: (
      owned: OwnedPart,
      ids: ReadonlyArray<string>,
    ) => Effect.Effect<void, SequenceStoreError | StoreTaken>
  }
>()("@nereid/cluster/SequenceStore") {}
