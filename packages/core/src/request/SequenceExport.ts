/** Sequences as data, on their way from one server to another. */
import type { TypedTensor } from "../tensor/TypedTensor.ts"
import type { SequenceId } from "./SequencePosition.ts"

export interface SequenceSnapshot {
  readonly id: SequenceId
  /** Time since its first request, in nanoseconds. */
  readonly ageNanos: number
  /** Its own limit of idle time in nanoseconds, infinite for none; undefined for that of the model. */
  readonly maxIdleNanos?: number | undefined
  /**
   * State tensors in the order of the fingerprint, with a batch dimension of 1 where the model has one; undefined
   * before the first execution.
   */
  readonly tensors: ReadonlyArray<TypedTensor> | undefined
}

/** Sequences of one model. */
export interface SequenceExport {
  /** Version of the data. An import refuses other versions. */
  readonly format: number
  readonly model: string
  /** Fingerprint of the state tensors, equal where a state fits. */
  readonly states: string
  readonly sequences: ReadonlyArray<SequenceSnapshot>
}
