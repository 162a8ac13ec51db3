/** What requests to a model are checked against, and responses named by. */
import type { Signature } from "../tensor/TensorSpec.ts"

export interface ModelInterface {
  readonly name: string
  /** A positive integer, in digits. */
  readonly version: string
  readonly signature: Signature
  /** The most rows of one batch; 0 for a model without a batch dimension. */
  readonly maxBatchSize: number
}
