import type { SequenceCounts } from "../metrics/SequenceCounts.ts"

/** The queue and the instances of a model at one moment. */
export interface Activity {
  /** Age of the oldest request in the queue, in nanoseconds; 0 for an empty queue. */
  readonly oldestNanos: number
  readonly instances: number
  /** Time in which instances had batches, in nanoseconds since the start: the sum of all instances. */
  readonly busyNanos: number
  /** Undefined for a model without sequences. */
  readonly sequences?: SequenceCounts | undefined
}

/** A model without instances and queue here. */
export const none: Activity = { oldestNanos: 0, instances: 0, busyNanos: 0 }
