/** A request of a sequence as its handler sees it, and what the handler returns for it. */
import type { Schema } from "effect"
import type { Declared, StateOf } from "../model/Declared.ts"
import type { Batched, Literals, Sample } from "../model/Definition.ts"
import type { Fields } from "../model/Field.ts"
import type { StateSchema } from "../model/SequenceOptions.ts"
import type { SequenceId } from "../request/SequencePosition.ts"
import type { JoinedBatch } from "./JoinedBatch.ts"
import type { KeysOf, Mistakes } from "./OutputMistake.ts"
import type { HandledRequest } from "./RequestContext.ts"

/** The place of a request in its sequence. A sequence of one request starts and ends with it. */
export interface HandledPosition {
  /** An unsigned integer of 64 bits, or a string. */
  readonly id: SequenceId
  readonly isStart: boolean
  /** False for all requests of a caller that leaves its session without a last one. */
  readonly isEnd: boolean
}

/** A request of a sequence, with the state of the sequence. */
export interface HandledSequence<P extends Declared> extends HandledRequest<P> {
  readonly sequence: HandledPosition
  /**
   * As the request before has left it, or the initial one. Not to be modified: a request that fails leaves it as it is.
   */
  readonly state: StateOf<P>
}

/** The response to one request, and the state for the next one. */
export interface SequenceResult<O extends Fields, P extends Declared> {
  readonly outputs: Sample<O> | Literals<O>
  readonly state: StateOf<P>
}

/** The declared state; undefined if there is none. */
export type SchemaOf<P extends Declared> = P extends { readonly sequence: { readonly state: infer S } } ? S : undefined

/** The states of all rows of a batch: tensors along axis 0, or a list of values. */
export type BatchedStates<S> = S extends StateSchema
  ? S extends Fields
    ? Batched<S>
    : S extends { readonly Type: infer Value }
      ? ReadonlyArray<Value>
      : undefined
  : undefined

/**
 * The states of the sequences of a batch: state tensors of all rows along axis 0, or the values of a Schema in the
 * order of `requests`.
 */
export type BatchedState<P extends Declared> = BatchedStates<SchemaOf<P>>

/** A batch of requests of different sequences. */
export interface SequenceBatch<I extends Fields, P extends Declared> extends JoinedBatch<I, P> {
  /** In the order of `requests`. */
  readonly sequences: ReadonlyArray<HandledPosition>
  readonly state: BatchedState<P>
}

/** The outputs of all rows, and the states for their next requests. */
export interface SequenceBatchResult<O extends Fields, P extends Declared> {
  readonly outputs: Batched<O>
  readonly state: BatchedState<P>
}

/**
 * One element of a stream: a response, a state, or both. The last state is kept, once the stream has ended; without one
 * the state is unchanged.
 */
export interface SequenceResponse<O extends Fields, P extends Declared> {
  readonly outputs?: Sample<O> | Literals<O>
  readonly state?: StateOf<P>
}

/** The outputs in what a handler returns. */
export type OutputsIn<A> = A extends { readonly outputs: infer Outputs } ? Outputs : {}

/** The outputs in the responses of a stream, some of which have a state alone. */
export type StreamedOutputsIn<A> = A extends { readonly outputs: infer Outputs }
  ? Outputs
  : A extends { readonly state: unknown }
    ? never
    : {}

/** The mistake of a model without sequences, as a text. Unknown for one that has them, and while A is not inferred. */
export type Unsequenced<N extends string, P extends Declared, A> = [A] extends [never]
  ? unknown
  : P extends { readonly sequence: object }
    ? unknown
    : `model ${N} declares no sequence`

/** The mistake of a handler that ignores the sequences of its model, as a text. */
export type Sequenced<N extends string, P extends Declared, A> = [A] extends [never]
  ? unknown
  : P extends { readonly sequence: object }
    ? `model ${N} has sequences: provide it with Model.sequence`
    : unknown

/** The first of two mistakes, of which either may be unknown: the compiler would reduce two texts to never. */
export type FirstMistake<One, Other> = unknown extends One ? Other : One

/** The mistake in the state that a handler returns, as a text. `S` is the declaration of `State`. */
export type StateMistake<N extends string, S, State, Given> = [Given] extends [never]
  ? unknown
  : [Given] extends [{ readonly state: unknown }]
    ? StreamedStateMistake<N, S, State, Given>
    : `the handler of model ${N} returns no state`

/** The same of responses that need not have a state. */
export type StreamedStateMistake<N extends string, S, State, Given> = S extends Schema.Top
  ? [StatesIn<Given>] extends [State]
    ? unknown
    : OtherStateMistake<N>
  : TensorStateMistake<N, State, StatesIn<Given>>

/** The same of state tensors, each of which has a name. */
type TensorStateMistake<N extends string, State, Given> = unknown extends Given
  ? unknown
  : [KeysOf<Given>, Given] extends [keyof State, State]
    ? unknown
    : [Given] extends [object]
      ? NamedStateMistake<N, State, Given>
      : OtherStateMistake<N>

type NamedStateMistake<N extends string, State, Given> = [Mistakes<"state", N, State, Given>] extends [never]
  ? OtherStateMistake<N>
  : Mistakes<"state", N, State, Given>

type OtherStateMistake<N extends string> =
  `the state returned by the handler of model ${N} does not fit its declaration`

type StatesIn<Given> = Given extends { readonly state: infer State } ? State : never
