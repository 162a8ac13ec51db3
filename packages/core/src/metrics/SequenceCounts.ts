/** Numbers of sequences of a model: gauges of this moment, and counters since the load. */
import type { SequenceEnd } from "../request/SequencePosition.ts"

export interface SequenceCounts {
  /** Sequences that have a slot. */
  readonly live: number
  /** Sequences that wait for a slot. */
  readonly backlog: number
  /** Age of the oldest one that takes further requests, in nanoseconds; 0 if there is none. */
  readonly oldestNanos: number
  /** Bytes of all state tensors. */
  readonly stateBytes: number
  /** Sequences that are over, by reason. */
  readonly ended: { readonly [R in SequenceEnd]: number }
}

export class SequenceCounter {
  readonly #ended: { [R in SequenceEnd]: number } = {
    ended: 0,
    expired: 0,
    cancelled: 0,
    replaced: 0,
    failed: 0,
    tooLarge: 0,
    stopped: 0,
    moved: 0,
  }

  ended(reason: SequenceEnd): void {
    this.#ended[reason] += 1
  }

  counts(gauges: Omit<SequenceCounts, "ended">): SequenceCounts {
    return { ...gauges, ended: { ...this.#ended } }
  }
}
