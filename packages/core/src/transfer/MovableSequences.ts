/** A queue whose sequences can be moved to another server. */
import type { InferenceError } from "../error/InferenceError.ts"
import type { SequenceId } from "../request/SequencePosition.ts"
import type { SequenceExport, SequenceSnapshot } from "../request/SequenceExport.ts"

/**
 * A sequence that is being exported. Its running request ends, and further requests wait until the export has succeeded
 * (`commit`) or failed (`release`). Both have no effect on a sequence that is over.
 */
export interface HeldSequence {
  readonly id: SequenceId
  /** Bytes of its state. */
  readonly bytes: number
  /** Whether the sequence can be exported: not over, and without a request that executes. */
  readonly isQuiet: boolean
  /** Calls `done` once no request of the sequence executes, perhaps before this returns. */
  whenQuiet(done: () => void): void
  snapshot(now: number): SequenceSnapshot
  /** The sequence has moved: its waiting requests fail. */
  commit(): void
  /** The sequence goes on here. */
  release(now: number): void
}

export interface MovableSequences {
  /** Why sequences of the model cannot be moved; undefined if they can. */
  readonly moveProblem: InferenceError | undefined
  /** The part of an export that is the same for all sequences. */
  readonly exportHead: Omit<SequenceExport, "sequences">
  /** Ids of the sequences that take further requests, the oldest first, `limit` at most. */
  ids(limit: number): ReadonlyArray<SequenceId>
  /**
   * Holds sequences for an export; default all. Leaves out unknown ids, and sequences that cannot be exported now:
   * those without a slot, whose START waits, or whose state is not in tensors alone.
   */
  hold(ids?: Iterable<SequenceId>): ReadonlyArray<HeldSequence>
  /** Adds an idle sequence that another server has exported. Returns why it cannot; it has changed nothing then. */
  adopt(snapshot: SequenceSnapshot, now: number): InferenceError | undefined
}
