/** A model with sequences from a function of a whole batch, whose rows belong to different sequences. */
import type { Context, Layer } from "effect"
import type { ModelClass } from "../call/ModelClass.ts"
import type { Declared, Failing } from "../model/Declared.ts"
import type { Batched } from "../model/Definition.ts"
import type { Fields } from "../model/Field.ts"
import type { GivenOptions } from "../model/GivenOptions.ts"
import * as BatchHandler from "./BatchHandler.ts"
import type { CheckedHandler, InForm, Make, RequirementsOf, ValueOf } from "./CheckedHandler.ts"
import type {
  BatchedState,
  FirstMistake,
  HandledPosition,
  OutputsIn,
  SchemaOf,
  SequenceBatch,
  SequenceBatchResult,
  StateMistake,
  Unsequenced,
} from "./HandledSequence.ts"
import * as Handler from "./Handler.ts"
import type { JoinedBatch } from "./JoinedBatch.ts"
import type { OutputMistake } from "./OutputMistake.ts"
import { unhosted } from "./SequenceHandler.ts"
import { handledPosition, positionOf, SequenceStates } from "./SequenceStates.ts"
import { type HandlerResult, mapResult } from "./UserCode.ts"

/** The tensors and states of all rows in and out. */
export type SequenceBatchHandler<I extends Fields, O extends Fields, E, R, P extends Declared> = (
  batch: Batched<I>,
  context: SequenceBatch<I, P>,
) => HandlerResult<SequenceBatchResult<O, P>, E, R>

type CheckedSequenceBatchHandler<
  N extends string,
  I extends Fields,
  O extends Fields,
  A,
  EMake,
  RMake,
  P extends Declared,
> = CheckedHandler<
  [batch: Batched<I>, context: SequenceBatch<I, P>],
  A,
  HandlerResult<SequenceBatchResult<O, P>, never, never>,
  HandlerResult<SequenceBatchResult<O, P>, Failing<P>, unknown>,
  InForm<A, SequenceBatchResult<O, P>, Failing<P>>,
  FirstMistake<
    Unsequenced<N, P, A>,
    FirstMistake<
      OutputMistake<
        N,
        Batched<O>,
        OutputsIn<ValueOf<A>>,
        A,
        HandlerResult<SequenceBatchResult<O, P>, Failing<P>, unknown>
      >,
      StateMistake<N, SchemaOf<P>, BatchedState<P>, ValueOf<A>>
    >
  >,
  EMake,
  RMake
>

/**
 * A model with sequences from a function of a whole batch: one tensor per input and per state, all rows along axis 0,
 * each row of another sequence. States that are values of a Schema are a list, in the order of `requests`. Requests
 * share a batch only if their state tensors agree in shape. A failure fails every request of the batch and keeps their
 * states.
 *
 * ```ts
 * Model.sequenceBatch(Filter, ({ X }, { state: { MEAN } }) => {
 *   const mean = average(X, MEAN)
 *   return { outputs: { Y: mean }, state: { MEAN: mean } }
 * })
 * ```
 */
export function sequenceBatch<
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
  make: CheckedSequenceBatchHandler<N, I, O, A, EMake, RMake, P>,
  options?: GivenOptions<Options, Handler.HandlerOptions<I>>,
): Layer.Layer<Self, EMake | Handler.Failure<Options>, Handler.Needs<RMake, RequirementsOf<A>, Options>>
export function sequenceBatch<
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
  make: Make<SequenceBatchHandler<I, O, E, R, P>, EMake, RMake>,
  options?: GivenOptions<Options, Handler.HandlerOptions<I>>,
): Layer.Layer<Self, EMake | Handler.Failure<Options>, Handler.Needs<RMake, R, Options>> {
  const states = new SequenceStates(model.definition)
  const execute = BatchHandler.executor(states.inner)

  const handling =
    (handler: SequenceBatchHandler<I, O, E, R, P>) => (batch: Batched<Fields>, joined: JoinedBatch<Fields>) => {
      const { inputs, state } = states.split(batch)
      const positions = states.isTensors ? [] : joined.requests.map(positionOf)
      const scope = new SequenceScope(joined, states.batched(positions, state))
      // The inner model has the inputs and the states that the types of this one declare.
      const returned = handler(inputs as Batched<I>, scope as object as SequenceBatch<I, P>)
      return mapResult(returned, (result) => {
        const outputs = states.joined(result)
        for (const [index, value] of states.valuesIn(result, positions.length).entries()) {
          const position = positions[index]
          if (position !== undefined) states.keepValue(position, value)
        }
        return outputs as Batched<Fields>
      })
    }

  return Handler.instances(
    model,
    unhosted(model.definition.name, make),
    options,
    (handler, context: Context.Context<R>, environment) =>
      states.committing(execute<E, R>(handling(handler), context, environment)),
    { hasSequences: true, takesJoined: true },
  )
}

/** A joined batch with the states of its sequences. Positions are made on first use, as few handlers need them. */
class SequenceScope<I extends Fields> implements Omit<SequenceBatch<I, undefined>, "state"> {
  readonly state: unknown
  readonly #joined: JoinedBatch<I>
  #sequences: ReadonlyArray<HandledPosition> | undefined

  constructor(joined: JoinedBatch<I>, state: unknown) {
    this.state = state
    this.#joined = joined
  }

  get sequences(): ReadonlyArray<HandledPosition> {
    return (this.#sequences ??= this.requests.map((request) => handledPosition(positionOf(request))))
  }

  get requests(): JoinedBatch<I>["requests"] {
    return this.#joined.requests
  }

  get signal(): AbortSignal {
    return this.#joined.signal
  }

  get run(): JoinedBatch<I>["run"] {
    return this.#joined.run
  }

  get value(): JoinedBatch<I>["value"] {
    return this.#joined.value
  }

  get extents(): JoinedBatch<I>["extents"] {
    return this.#joined.extents
  }
}
