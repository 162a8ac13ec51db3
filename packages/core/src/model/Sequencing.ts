/**
 * How requests form sequences: ids, slots, control tensors and state tensors. Set by configurations of repositories and
 * by declarations in code. SequenceQueue.ts and SequenceInstance.ts implement it.
 */
import type { DataType } from "../tensor/DataType.ts"
import type { TypedTensor } from "../tensor/TypedTensor.ts"

/** A moment of a sequence that a control tensor tells the model. */
export type FlagKind = "START" | "END" | "READY"

/** An input that the scheduler makes: one element for each request. */
export type ControlTensor =
  | {
      readonly kind: FlagKind
      readonly name: string
      readonly datatype: "INT32" | "FP32" | "BOOL"
      readonly falseValue: number
      readonly trueValue: number
    }
  | {
      readonly kind: "CORRID"
      readonly name: string
      readonly datatype: "UINT64" | "INT64" | "UINT32" | "INT32" | "BYTES"
    }

/** An output of one request that is an input of the next one of its sequence. Dims exclude the batch dimension. */
export interface StateTensor {
  readonly input: string
  readonly output: string
  readonly datatype: DataType
  readonly dims: ReadonlyArray<number>
  /** Of a new sequence, without the batch dimension; undefined for zeros. */
  readonly initial: TypedTensor | undefined
}

/**
 * Each sequence has a slot of an instance until its end.
 *
 * - `direct`: the slot is a row of the instance's batches. A slot without a request is an empty row.
 * - `oldest`: requests of different sequences form dynamic batches, one request of each sequence at a time.
 * - `free`: as `oldest`, and any instance executes any request, because the scheduler holds all state.
 */
export type SequenceStrategy =
  | {
      readonly _tag: "direct"
      /** Slots of each instance. */
      readonly slots: number
      /** Nanoseconds that a request waits for others, where `minSlotUtilization` is not reached. */
      readonly maxQueueDelay: number
      readonly minSlotUtilization: number
    }
  | { readonly _tag: "oldest"; readonly slots: number }
  | { readonly _tag: "free"; readonly slots: number }

export interface Sequencing {
  readonly strategy: SequenceStrategy
  /** Nanoseconds after its last response at which a sequence expires; infinite for never. */
  readonly maxIdle: number
  /** The longest limit that a caller may give its sequence instead; infinite for any. */
  readonly maxIdleLimit: number
  /** Whether a request without an id is a sequence by itself, which the model may execute repeatedly. */
  readonly isIterative: boolean
  readonly controls: ReadonlyArray<ControlTensor>
  readonly states: ReadonlyArray<StateTensor>
  /** Sequences that may wait for a slot. */
  readonly maxBacklog: number
  readonly maxStateBytes: number
  readonly maxTotalStateBytes: number
}

/** The sequences of a model as its callers see them: every request belongs to one. */
export interface RequiredSequence {
  /** As in Sequencing. */
  readonly maxIdle: number
}

/** Undefined for a model that also takes requests without a sequence. */
export const required = (sequencing: Sequencing | undefined): RequiredSequence | undefined =>
  sequencing === undefined || sequencing.isIterative ? undefined : { maxIdle: sequencing.maxIdle }

export const sequenceDefaults = {
  maxBacklog: 100_000,
  maxStateBytes: 256 * 2 ** 20,
  maxTotalStateBytes: 2 ** 30,
}
