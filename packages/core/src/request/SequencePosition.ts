/** The place of a request in its sequence. The memory of the sequence is in sequence/SequenceMemory.ts. */
import type { LentMemory } from "../tensor/LentMemory.ts"
import type { TypedTensor } from "../tensor/TypedTensor.ts"

/** An unsigned integer of 64 bits, or a string. `5n` and `"5"` are different ids. */
export type SequenceId = bigint | string

/** An id that no other caller guesses, from 1 to 2^63 - 1: gRPC has signed integers. */
export const randomId = (): bigint => {
  const [random = 0n] = crypto.getRandomValues(new BigUint64Array(1))
  return BigInt.asUintN(63, random) || 1n
}

/** Why a sequence is over. `replaced`: a START came before its END. `moved`: it has been exported. */
export type SequenceEnd = "ended" | "expired" | "cancelled" | "replaced" | "failed" | "tooLarge" | "stopped" | "moved"

/** State that a sequence keeps between its requests, from one START to the end. */
export interface SequenceState {
  /**
   * State tensors by position in `Sequencing.states`, as the last execution left them; undefined before the first. May
   * be views of lent memory, so they are read at once.
   */
  readonly tensors: ReadonlyArray<TypedTensor> | undefined
  /** Equal for states whose tensors have the same shapes, apart from the first extent. Undefined without tensors. */
  readonly shapeKey: string | undefined
  /** The state tensors for a reader that may hold them: their memory does not change. */
  readonly handOut: () => ReadonlyArray<TypedTensor> | undefined
  /**
   * Keeps copies of these tensors. False if they exceed a limit: the sequence is over then. `overwrites`: whether the
   * copies may take the memory of the tensors so far, which nothing else may hold then. `lent`: the memory of these
   * tensors, which are copied once it is reclaimed.
   */
  readonly keep: (tensors: ReadonlyArray<TypedTensor>, overwrites: boolean, lent?: LentMemory) => boolean
  /** Keeps a copy of one row of these tensors, none of which has elements of BYTES. Returns the same as `keep`. */
  readonly keepRow: (tensors: ReadonlyArray<TypedTensor>, row: number, rows: number) => boolean
  /** State of a handler; undefined before it has set one. */
  value: unknown
  /** Called once, at the end of the sequence. */
  onEnd: ((reason: SequenceEnd) => void) | undefined
}

/** The state of a request outside of any sequence, which nothing keeps. */
export const noState = (): SequenceState => ({
  tensors: undefined,
  shapeKey: undefined,
  handOut: () => undefined,
  keep: () => true,
  keepRow: () => true,
  value: undefined,
  onEnd: undefined,
})

export interface SequencePosition {
  readonly id: SequenceId
  readonly isStart: boolean
  readonly isEnd: boolean
  /** False for a row that only fills a gap of a batch. */
  readonly isReady: boolean
  readonly state: SequenceState
  /** The state that a handler has returned, until the request succeeds and `state` keeps it. */
  returned?: object | undefined
}
