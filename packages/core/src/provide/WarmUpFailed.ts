/** The error of a model whose warm-up failed. It is not an InferenceError, as no request receives it. */
import { Data } from "effect"

/** A warm-up request failed, so the model is not loaded. */
export class WarmUpFailed extends Data.TaggedError("WarmUpFailed")<{
  readonly model: string
  readonly version: string
  /** Name of the warm-up; its index by default. */
  readonly sample: string
  /** Message of the request that failed. */
  readonly reason: string
  readonly message: string
}> {}
