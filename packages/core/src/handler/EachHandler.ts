/**
 * A model from a function of one sample. EachRequest.ts executes its requests; BatchHandler.ts has functions of whole
 * batches.
 */
import { type Context, Exit, type Layer } from "effect"
import type { HandlerEnvironment } from "../call/Caller.ts"
import type { Definition, Literals, Sample } from "../model/Definition.ts"
import type { ModelClass } from "../call/ModelClass.ts"
import type { CheckedHandler, InForm, Make, RequirementsOf, ValueOf } from "./CheckedHandler.ts"
import { type EachOptions, EachRequest } from "./EachRequest.ts"
import type { Fields } from "../model/Field.ts"
import type { FirstMistake, Sequenced } from "./HandledSequence.ts"
import * as Handler from "./Handler.ts"
import type { ExecutionResult, Instance } from "../instance/Instance.ts"
import type { Declared, Failing } from "../model/Declared.ts"
import type { GivenOptions } from "../model/GivenOptions.ts"
import type { OutputMistake } from "./OutputMistake.ts"
import type { HandledRequest, RequestContext } from "./RequestContext.ts"
import * as SampleCodec from "../model/SampleCodec.ts"
import type { HandlerResult } from "./UserCode.ts"

/** One decoded sample in, one out: a value, a promise, or an effect, which may need RequestContext. */
export type EachHandler<I extends Fields, O extends Fields, E, R, P extends Declared = undefined> = (
  sample: Sample<I>,
  request: HandledRequest<P>,
) => HandlerResult<Sample<O> | Literals<O>, E, R>

type EachHandlerResult<O extends Fields, E, R> = HandlerResult<Sample<O> | Literals<O>, E, R>

type CheckedEachHandler<
  N extends string,
  I extends Fields,
  O extends Fields,
  A,
  EMake,
  RMake,
  P extends Declared,
> = CheckedHandler<
  [sample: Sample<I>, request: HandledRequest<P>],
  A,
  EachHandlerResult<O, never, never>,
  EachHandlerResult<O, Failing<P>, unknown>,
  InForm<A, Sample<O> | Literals<O>, Failing<P>>,
  FirstMistake<
    Sequenced<N, P, A>,
    OutputMistake<N, Sample<O>, ValueOf<A>, A, EachHandlerResult<O, Failing<P>, unknown>>
  >,
  EMake,
  RMake
>

/**
 * A model from a function of one sample. The samples of a batch run concurrently; a failure is that of its request,
 * whose own rows are answered or fail together, and of no other.
 *
 * `make` is the handler, or an Effect that builds one, once per instance, in a scope that closes when the model
 * unloads.
 */
export function each<
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
  make: CheckedEachHandler<N, I, O, A, EMake, RMake, P>,
  options?: GivenOptions<Options, Handler.HandlerOptions<I>>,
): Layer.Layer<
  Self,
  EMake | Handler.Failure<Options>,
  Handler.Needs<RMake, Exclude<RequirementsOf<A>, RequestContext>, Options>
>
export function each<
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
  make: Make<EachHandler<I, O, E, R, P>, EMake, RMake>,
  options?: GivenOptions<Options, Handler.HandlerOptions<I>>,
): Layer.Layer<Self, EMake | Handler.Failure<Options>, Handler.Needs<RMake, Exclude<R, RequestContext>, Options>> {
  const execute = executor(model.definition)
  return Handler.instances(
    model,
    make,
    options,
    (handler, context: Context.Context<Exclude<R, RequestContext>>, handling) =>
      execute<E, R>(handler, context, handling),
    { granularity: "sample" },
  )
}

/** Makes the `execute` of instances with such handlers. */
export const executor = <I extends Fields, O extends Fields, P extends Declared>({
  name,
  errors,
  signature,
  inputs,
  outputs,
  maxBatchSize,
}: Definition<I, O, P>) => {
  const inputCodec = SampleCodec.make(inputs, signature.inputs)
  const outputCodec = SampleCodec.make(outputs, signature.outputs)
  const batching = maxBatchSize > 0
  const model = { name, errors, signature, batching, inputCodec, outputCodec }
  return <E, R>(
    handler: EachHandler<I, O, E, R, P>,
    context: Context.Context<Exclude<R, RequestContext>>,
    handling: HandlerEnvironment,
  ): Instance["execute"] => execute({ ...model, handler, context, handling })
}

const execute =
  <I extends Fields, O extends Fields, E, R, P extends Declared>(
    options: EachOptions<I, O, E, R, P>,
  ): Instance["execute"] =>
  ({ requests }, settle) => {
    const outcomes: Array<ExecutionResult["outcomes"][number]> = []
    let open = requests.length
    let isInterrupted = false
    const calls = requests.map(
      (request, index) =>
        new EachRequest(options, request, (outcome) => {
          outcomes[index] = outcome
          open -= 1
          if (open === 0) settle(isInterrupted ? Exit.interrupt() : Exit.succeed(Handler.executionResult(outcomes)))
        }),
    )
    for (const call of calls) call.begin()
    return (request) => {
      if (request !== undefined) return calls[request]?.interrupt()
      isInterrupted = true
      for (const call of calls) call.interrupt()
    }
  }
