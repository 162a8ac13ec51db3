/** Why a model does not come to run: what it was tried with failed. Not an answer to a request, so not one of InferenceError.ts. */
import { Data } from "effect"

export class WarmUpFailed extends Data.TaggedError("WarmUpFailed")<{
  readonly model: string
  readonly version: string
  readonly message: string
}> {}
