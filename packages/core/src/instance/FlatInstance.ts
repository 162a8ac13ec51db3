/**
 * An instance of a model with flat batches (FlatBatch.ts): passes each batch as one request to an instance of the inner
 * model.
 */
import { Exit, Result } from "effect"
import * as Batch from "../batch/Batch.ts"
import type { Definition } from "../model/Definition.ts"
import type { InferenceError } from "../error/InferenceError.ts"
import type { Fields } from "../model/Field.ts"
import * as FlatBatch from "../batch/FlatBatch.ts"
import { type ExecutionResult, type Instance, wrapInstance } from "./Instance.ts"

/** Makes an instance of the model of `definition` from an instance of its inner model. */
export const make = (definition: Definition<Fields, Fields>, flat: FlatBatch.FlatBatch, inner: Instance): Instance => {
  const cut = (batch: Batch.Batch, execution: ExecutionResult): Exit.Exit<ExecutionResult, InferenceError> => {
    const [outcome] = execution.outcomes
    if (outcome === undefined) return Exit.die("An instance has answered no request of its batch. This is a bug.")
    // The inner model cannot identify the failing request, so all fail.
    if (Result.isFailure(outcome)) return Exit.fail(outcome.failure)
    const responses = FlatBatch.cut(flat, definition, batch, outcome.success)
    if (Result.isFailure(responses)) return Exit.fail(responses.failure)
    return Exit.succeed({ ...execution, outcomes: responses.success.map(Result.succeed) })
  }
  return wrapInstance(inner, (batch, settle) =>
    inner.execute(Batch.make([FlatBatch.join(flat, batch)]), (exit) =>
      settle(Exit.isSuccess(exit) ? cut(batch, exit.value) : exit),
    ),
  )
}
