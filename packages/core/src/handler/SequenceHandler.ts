/**
 * A model with sequences from a function of one sample and the state of its sequence. SequenceBatchHandler.ts and
 * SequenceStreamHandler.ts have the forms of batches and streams, PerSequenceHandler.ts a function for each sequence.
 */
import { type Context, Effect, type Layer } from "effect"
import type { ModelClass } from "../call/ModelClass.ts"
import { Hosting } from "../instance/Hosting.ts"
import type { Declared, Failing, StateOf } from "../model/Declared.ts"
import type { Sample } from "../model/Definition.ts"
import type { Fields } from "../model/Field.ts"
import type { GivenOptions } from "../model/GivenOptions.ts"
import type { CheckedHandler, InForm, Make, RequirementsOf, ValueOf } from "./CheckedHandler.ts"
import * as EachHandler from "./EachHandler.ts"
import type {
  FirstMistake,
  HandledSequence,
  OutputsIn,
  SchemaOf,
  SequenceResult,
  StateMistake,
  Unsequenced,
} from "./HandledSequence.ts"
import * as Handler from "./Handler.ts"
import type { OutputMistake } from "./OutputMistake.ts"
import type { HandledRequest, RequestContext } from "./RequestContext.ts"
import { part, positionOf, SequenceStates } from "./SequenceStates.ts"
import { type HandlerResult, mapResult } from "./UserCode.ts"

/** One decoded sample and the state in; outputs and the next state out: a value, a promise, or an effect. */
export type SequenceHandler<I extends Fields, O extends Fields, E, R, P extends Declared> = (
  sample: Sample<I>,
  request: HandledSequence<P>,
) => HandlerResult<SequenceResult<O, P>, E, R>

type CheckedSequenceHandler<
  N extends string,
  I extends Fields,
  O extends Fields,
  A,
  EMake,
  RMake,
  P extends Declared,
> = CheckedHandler<
  [sample: Sample<I>, request: HandledSequence<P>],
  A,
  HandlerResult<SequenceResult<O, P>, never, never>,
  HandlerResult<SequenceResult<O, P>, Failing<P>, unknown>,
  InForm<A, SequenceResult<O, P>, Failing<P>>,
  FirstMistake<
    Unsequenced<N, P, A>,
    FirstMistake<
      OutputMistake<N, Sample<O>, OutputsIn<ValueOf<A>>, A, HandlerResult<SequenceResult<O, P>, Failing<P>, unknown>>,
      StateMistake<N, SchemaOf<P>, StateOf<P>, ValueOf<A>>
    >
  >,
  EMake,
  RMake
>

/**
 * A model with sequences from a function of one sample and the state that its declaration has:
 *
 * ```ts
 * Model.sequence(Counter, ({ VALUE }, { state: { SUM } }) => {
 *   const sum = SUM + VALUE
 *   return { outputs: { TOTAL: sum }, state: { SUM: sum } }
 * })
 * ```
 *
 * The requests of a sequence are handled one by one, those of different sequences concurrently. The returned state is
 * that of the next request. A failure keeps the state as it was.
 *
 * `make` is the handler, or an Effect that builds one, once per instance, in a scope that closes when the model
 * unloads.
 */
export function sequence<
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
  make: CheckedSequenceHandler<N, I, O, A, EMake, RMake, P>,
  options?: GivenOptions<Options, Handler.HandlerOptions<I>>,
): Layer.Layer<
  Self,
  EMake | Handler.Failure<Options>,
  Handler.Needs<RMake, Exclude<RequirementsOf<A>, RequestContext>, Options>
>
export function sequence<
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
  make: Make<SequenceHandler<I, O, E, R, P>, EMake, RMake>,
  options?: GivenOptions<Options, Handler.HandlerOptions<I>>,
): Layer.Layer<Self, EMake | Handler.Failure<Options>, Handler.Needs<RMake, Exclude<R, RequestContext>, Options>> {
  const states = new SequenceStates(model.definition)
  const execute = EachHandler.executor(states.inner)

  const handling =
    (handler: SequenceHandler<I, O, E, R, P>) => (sample: Sample<Fields>, request: HandledRequest<P>) => {
      const position = positionOf(request)
      const { inputs, state } = states.split(sample)
      // The inner model has the inputs that the types of this one declare.
      const returned = handler(inputs as Sample<I>, states.handled(request, position, state))
      return mapResult(returned, (result) => {
        const outputs = states.joined(result)
        states.keepValue(position, part(result, "state"))
        return outputs as Sample<Fields>
      })
    }

  return Handler.instances(
    model,
    unhosted(model.definition.name, make),
    options,
    (handler, context: Context.Context<Exclude<R, RequestContext>>, environment) =>
      states.committing(execute<E, R>(handling(handler), context, environment)),
    { granularity: "sample", hasSequences: true },
  )
}

/** Dies in a worker thread: its main thread has the states. */
export const unhosted = <H, E, R>(model: string, make: Make<H, E, R>): Effect.Effect<H, E, R> =>
  Effect.flatMap(Hosting, (hosting) => {
    if (hosting !== undefined) {
      return Effect.die(new TypeError(`Model "${model}" has sequences, whose handler cannot run in a worker thread.`))
    }
    return Effect.isEffect(make) ? make : Effect.succeed(make)
  })
