/** The properties of a model that requests are checked against, and that responses name. */
import type { Signature } from "../tensor/TensorSpec.ts"

export interface ModelInterface {
  readonly name: string
  /** A positive integer, in digits. */
  readonly version: string
  readonly signature: Signature
  /** The most rows of one batch; 0 for a model without a batch dimension. */
  readonly maxBatchSize: number
  /** Undefined for a model without sequences. */
  readonly sequencing?: object | undefined
  /** Undefined unless every request belongs to a sequence. An ensemble has it of its steps. */
  readonly requiredSequence?: object | undefined
}
