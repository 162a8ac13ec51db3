/** A model from a function of a whole batch. EachHandler.ts has functions of single samples. */
import { type Context, type Layer, Result } from "effect"
import * as Batch from "../batch/Batch.ts"
import * as BatchCall from "./BatchCall.ts"
import type { CheckedHandler, InForm, Make, RequirementsOf, ValueOf } from "./CheckedHandler.ts"
import type { HandlerEnvironment } from "../call/Caller.ts"
import type { Instance } from "../instance/Instance.ts"
import type { Batched, Definition } from "../model/Definition.ts"
import type { ModelClass } from "../call/ModelClass.ts"
import type { Fields } from "../model/Field.ts"
import { type JoinedBatch, JoinedInputs, JoinedScope } from "./JoinedBatch.ts"
import type { FirstMistake, Sequenced } from "./HandledSequence.ts"
import * as Handler from "./Handler.ts"
import type { OutputMistake } from "./OutputMistake.ts"
import type { GivenOptions } from "../model/GivenOptions.ts"
import { collect, named, withBatch, withoutBatch } from "../model/BatchedTensors.ts"
import * as Padding from "../batch/Padding.ts"
import type { Declared, Failing } from "../model/Declared.ts"
import * as UserCode from "./UserCode.ts"

/**
 * The whole batch in and out, one tensor per input and output, along axis 0; out as a value, a promise or an effect.
 */
export type BatchHandler<I extends Fields, O extends Fields, E, R, P extends Declared = undefined> = (
  batch: Batched<I>,
  context: JoinedBatch<I, P>,
) => UserCode.HandlerResult<Batched<O>, E, R>

type BatchHandlerResult<O extends Fields, E, R> = UserCode.HandlerResult<Batched<O>, E, R>

type CheckedBatchHandler<
  N extends string,
  I extends Fields,
  O extends Fields,
  A,
  EMake,
  RMake,
  P extends Declared,
> = CheckedHandler<
  [batch: Batched<I>, context: JoinedBatch<I, P>],
  A,
  BatchHandlerResult<O, never, never>,
  BatchHandlerResult<O, Failing<P>, unknown>,
  InForm<A, Batched<O>, Failing<P>>,
  FirstMistake<
    Sequenced<N, P, A>,
    OutputMistake<N, Batched<O>, ValueOf<A>, A, BatchHandlerResult<O, Failing<P>, unknown>>
  >,
  EMake,
  RMake
>

/**
 * Provides a model from a function of a whole batch: one tensor per input, all rows along axis 0. A failure fails every
 * request of the batch. Without batching, the function receives one row.
 */
export function batch<
  Self,
  N extends string,
  I extends Fields,
  O extends Fields,
  A = never,
  EMake = never,
  RMake = never,
  P extends Declared = undefined,
  const Options extends Handler.HandlerOptions<I> = {},
>(
  model: ModelClass<Self, N, I, O, P>,
  make: CheckedBatchHandler<N, I, O, A, EMake, RMake, P>,
  options?: GivenOptions<Options, Handler.HandlerOptions<I>>,
): Layer.Layer<Self, EMake | Handler.Failure<Options>, Handler.Needs<RMake, RequirementsOf<A>, Options>>
export function batch<
  Self,
  N extends string,
  I extends Fields,
  O extends Fields,
  E extends Failing<P>,
  R,
  EMake,
  RMake,
  P extends Declared,
  const Options extends Handler.HandlerOptions<I>,
>(
  model: ModelClass<Self, N, I, O, P>,
  make: Make<BatchHandler<I, O, E, R, P>, EMake, RMake>,
  options?: GivenOptions<Options, Handler.HandlerOptions<I>>,
): Layer.Layer<Self, EMake | Handler.Failure<Options>, Handler.Needs<RMake, R, Options>> {
  return uncheckedBatch(model, make, options)
}

/** `batch` for a handler whose outputs have other names in its code, and are checked there. */
export const uncheckedBatch = <
  Self,
  N extends string,
  I extends Fields,
  O extends Fields,
  E extends Failing<P> = never,
  R = never,
  EMake = never,
  RMake = never,
  P extends Declared = undefined,
  const Options extends Handler.HandlerOptions<I> = {},
>(
  model: ModelClass<Self, N, I, O, P>,
  make: Make<BatchHandler<I, O, E, R, P>, EMake, RMake>,
  options?: GivenOptions<Options, Handler.HandlerOptions<I>>,
): Layer.Layer<Self, EMake | Handler.Failure<Options>, Handler.Needs<RMake, R, Options>> => {
  const execute = executor(model.definition)
  return Handler.instances(model, make, options, (handler, context: Context.Context<R>, handling) =>
    execute<E, R>(handler, context, handling),
  )
}

/** Makes the `execute` of instances with such handlers. */
export const executor = <I extends Fields, O extends Fields, P extends Declared>(definition: Definition<I, O, P>) => {
  const { name, signature, maxBatchSize } = definition
  const batching = maxBatchSize > 0
  const inputs = new JoinedInputs<I>(definition)

  return <E, R>(
    handler: BatchHandler<I, O, E, R, P>,
    context: Context.Context<R>,
    handling: HandlerEnvironment,
  ): Instance["execute"] =>
    BatchCall.execute<Batched<O>, E, R, P>(definition, context, handling, {
      begin: (requests, scope, fork) => {
        const tensors = Batch.inputs(requests)
        const batched = batching ? tensors : tensors.map((tensor) => tensor && withBatch(tensor))
        // Validation has matched every tensor to its spec, so the record has the shape of Batched<I>.
        const joined = new JoinedScope(inputs, requests, scope, batched)
        return UserCode.call(handler, named(signature.inputs, batched) as Batched<I>, joined, fork)
      },
      complete: (requests, scope, outputs) => {
        const collected = collect(signature.outputs, outputs, Batch.totalRows(requests))
        if (Result.isFailure(collected)) return Result.fail(Handler.wrongOutput(name, collected.failure))
        const { tensors } = collected.success
        const outputTensors = Handler.present(
          batching ? tensors : tensors.map((tensor) => tensor && withoutBatch(tensor)),
        )
        const uncut = requests.padding && Padding.problem(requests.padding, outputTensors)
        if (uncut !== undefined) {
          const field = signature.outputs[uncut.position]?.name ?? ""
          return Result.fail(Handler.wrongOutput(name, { field, message: uncut.message }))
        }
        const { joined, copiedFrom } = requests
        const own = joined === undefined ? outputTensors : outputTensors.slice(0, copiedFrom)
        const outcomes = Batch.split(requests, own).map(({ outputs }, index) =>
          Result.succeed({ outputs, parameters: scope.responseParameters(index) }),
        )
        const result = Handler.executionResult(outcomes)
        return Result.succeed(joined === undefined ? result : { ...result, joined: outputTensors.slice(copiedFrom) })
      },
    })
}
