/** A model from a function of a whole batch. Functions of single samples are EachHandler.ts's. */
import { Cause, type Context, Effect, Exit, type Layer, Result } from "effect"
import * as Batch from "./Batch.ts"
import type { Batched, ModelClass } from "./Definition.ts"
import { ExecutionFailed, type InferenceError } from "./Errors.ts"
import type { Fields } from "./Field.ts"
import * as Handler from "./Handler.ts"
import type { Execution } from "./Instance.ts"
import { collect, named, withBatch, withoutBatch } from "./BatchedTensors.ts"
import * as UserCode from "./UserCode.ts"

/** The whole batch in and out, one tensor per input and output, along axis 0; out as a value or as an effect. */
export type BatchHandler<I extends Fields, O extends Fields, E, R> = (
  batch: Batched<I>,
) => UserCode.Returned<Batched<O>, E, R>

/**
 * A model from a function of a whole batch: one tensor per input, all rows along axis 0. A failure is the failure of
 * every request of the batch. Called with one row where the model does not batch.
 */
export const batch = <
  Self,
  N extends string,
  I extends Fields,
  O extends Fields,
  E = never,
  R = never,
  EMake = never,
  RMake = never,
>(
  model: ModelClass<Self, N, I, O>,
  make: Effect.Effect<BatchHandler<I, O, E, R>, EMake, RMake> | BatchHandler<I, O, E, R>,
  options?: Handler.HandlerOptions,
): Layer.Layer<Self, EMake, Handler.Needs<RMake, R>> => {
  const { name, signature, maxBatchSize } = model.definition
  const batching = maxBatchSize > 0

  const execution = (requests: Batch.Batch, outputs: Batched<O>): Exit.Exit<Execution, InferenceError> => {
    const collected = collect(signature.outputs, outputs)
    if (Result.isFailure(collected)) return Exit.fail(Handler.wrongOutput(name, collected.failure))
    const { tensors, rows } = collected.success
    if (rows !== requests.rows) {
      const message = `model '${name}' answered ${rows} rows to a batch of ${requests.rows}`
      return Exit.fail(new ExecutionFailed({ message }))
    }
    const answers = Handler.present(batching ? tensors : tensors.map((tensor) => tensor && withoutBatch(tensor)))
    return Exit.succeed(Handler.execution(Batch.split(requests, answers).map(Result.succeed)))
  }

  const answer = (requests: Batch.Batch, exit: Exit.Exit<Batched<O>, E>): Exit.Exit<Execution, InferenceError> => {
    try {
      if (Exit.isSuccess(exit)) return execution(requests, exit.value)
      return Exit.failCause(Cause.map(exit.cause, (error) => Handler.failed(name, error)))
    } catch (defect) {
      return Exit.die(defect)
    }
  }

  return Handler.instances(model, make, options, (handler, context: Context.Context<R>) => {
    const fork = Effect.runForkWith(context)
    return (requests, settle) => {
      const tensors = Batch.inputs(requests)
      const batched = batching ? tensors : tensors.map((tensor) => tensor && withBatch(tensor))
      // Validation has matched every tensor to its spec, so the record has the shape of Batched<I>.
      const begun = UserCode.call(handler, named(signature.inputs, batched) as Batched<I>, fork)
      if (Exit.isExit(begun)) {
        settle(answer(requests, begun))
        return nothing
      }
      begun.addObserver((exit) => settle(answer(requests, exit)))
      return () => begun.interruptUnsafe()
    }
  })
}

const nothing = () => {}
