/** The state of one sequence, and the limits of all states of a model. */
import type { SequenceEnd, SequenceState } from "../request/SequencePosition.ts"
import type { Borrower, LentMemory } from "../tensor/LentMemory.ts"
import { TypedTensor } from "../tensor/TypedTensor.ts"
import { ShapeKeys } from "./StateKey.ts"

export interface StateLimits {
  /** Bytes of the state tensors of one sequence. */
  readonly maxStateBytes: number
  /** Bytes of the state tensors of all sequences of the model. */
  readonly maxTotalStateBytes: number
}

/** Bytes of state tensors that all sequences of a model hold, and the keys of their shapes. */
export class StateBudget {
  readonly shapes = new ShapeKeys()
  readonly #limits: StateLimits
  #bytes = 0

  constructor(limits: StateLimits) {
    this.#limits = limits
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Replaces `before` bytes of one sequence by `after`, unless that exceeds a limit. */
  replace(before: number, after: number): boolean {
    const total = this.#bytes - before + after
    if (after > this.#limits.maxStateBytes || (after > before && total > this.#limits.maxTotalStateBytes)) return false
    this.#bytes = total
    return true
  }
}

export class SequenceMemory implements SequenceState, Borrower {
  readonly #budget: StateBudget
  #tensors: ReadonlyArray<TypedTensor> | undefined
  /** Memory of which the tensors are views. */
  #lender: LentMemory | undefined
  /** Tensors whose memory takes the lent ones. */
  #spare: ReadonlyArray<TypedTensor> | undefined
  #bytes = 0
  /** Whether another reader may hold the tensors, whose memory must not change then. */
  #isHeld = false
  #end: SequenceEnd | undefined
  /** Made with the tensors, while they are in the cache of the processor. */
  shapeKey: string | undefined = undefined
  value: unknown = undefined
  onEnd: ((reason: SequenceEnd) => void) | undefined = undefined

  constructor(budget: StateBudget) {
    this.#budget = budget
  }

  get tensors(): ReadonlyArray<TypedTensor> | undefined {
    return this.#tensors
  }

  /** The same tensors, in memory that is only replaced by another request of the sequence. */
  get ownTensors(): ReadonlyArray<TypedTensor> | undefined {
    if (this.#lender !== undefined) this.giveBack(this.#lender)
    return this.handOut()
  }

  readonly handOut = (): ReadonlyArray<TypedTensor> | undefined => {
    this.#isHeld = true
    return this.#tensors
  }

  /** Bytes of the state tensors. */
  get bytes(): number {
    return this.#bytes
  }

  /** Whether it has state that is not in tensors. */
  get isPrivate(): boolean {
    return this.value !== undefined || this.onEnd !== undefined
  }

  /** Whether its state exceeded a limit. */
  get isTooLarge(): boolean {
    return this.#end === "tooLarge"
  }

  readonly keep = (tensors: ReadonlyArray<TypedTensor>, overwrites: boolean, lent?: LentMemory): boolean => {
    // The state of a sequence that is over reaches no further request.
    if (this.#end !== undefined) return this.#end !== "tooLarge"
    let bytes = 0
    for (const tensor of tensors) bytes += tensor.bytes.length
    if (!this.#budget.replace(this.#bytes, bytes)) {
      this.end("tooLarge")
      return false
    }
    this.#bytes = bytes
    this.shapeKey = this.#budget.shapes.of(tensors)
    if (this.#lender === undefined) this.#spare = overwrites ? this.#tensors : undefined
    this.#isHeld = false
    this.#tensors = tensors
    this.#lender = lent
    if (lent === undefined) this.#copy()
    else lent.lend(this)
    return true
  }

  readonly keepRow = (tensors: ReadonlyArray<TypedTensor>, row: number, rows: number): boolean => {
    if (this.#end !== undefined) return this.#end !== "tooLarge"
    let bytes = 0
    for (const tensor of tensors) bytes += tensor.bytes.length / rows
    if (!this.#budget.replace(this.#bytes, bytes)) {
      this.end("tooLarge")
      return false
    }
    this.#bytes = bytes
    const shapeKey = this.#budget.shapes.of(tensors)
    const isOwn = this.#tensors !== undefined && this.#lender === undefined && !this.#isHeld
    if (isOwn && this.shapeKey === shapeKey) overwriteRow(this.#tensors, tensors, row)
    else {
      this.#tensors = tensors.map((tensor) => copyRow(tensor, row, rows))
      this.#lender = this.#spare = undefined
      this.#isHeld = false
    }
    this.shapeKey = shapeKey
    return true
  }

  giveBack(memory: LentMemory): void {
    if (this.#lender !== memory) return
    this.#lender = undefined
    this.#copy()
  }

  /** Outputs are views of their batch, whose memory would live as long as the state. */
  #copy(): void {
    const before = this.#spare
    this.#spare = undefined
    this.#tensors = this.#tensors?.map((tensor, index) => copy(tensor, before?.[index]))
  }

  /** Releases the state. Only the first call has an effect. */
  end(reason: SequenceEnd): void {
    if (this.#end !== undefined) return
    this.#end = reason
    this.#budget.replace(this.#bytes, 0)
    this.#bytes = 0
    this.#tensors = this.#spare = this.#lender = undefined
    this.shapeKey = undefined
    this.onEnd?.(reason)
  }
}

/** Puts one row of each tensor into the memory of `own`, which has the same shapes but for the first extent. */
const overwriteRow = (
  own: ReadonlyArray<TypedTensor> | undefined,
  tensors: ReadonlyArray<TypedTensor>,
  row: number,
): void => {
  if (own === undefined) return
  for (let index = 0; index < own.length; index++) {
    const to = own[index]?.bytes
    const from = tensors[index]?.bytes
    if (to === undefined || from === undefined) continue
    const offset = row * to.length
    if (to.length > shortest) to.set(from.subarray(offset, offset + to.length))
    else for (let at = 0; at < to.length; at++) to[at] = from[offset + at] ?? 0
  }
}

/** Bytes up to which a loop copies faster than a call. */
const shortest = 64

const copyRow = ({ datatype, shape, bytes }: TypedTensor, row: number, rows: number): TypedTensor => {
  const length = bytes.length / rows
  return new TypedTensor(datatype, [1, ...shape.slice(1)], bytes.slice(row * length, (row + 1) * length))
}

/** A copy, in the memory of `before` if that has the same size: new memory costs time and garbage collections. */
const copy = ({ datatype, shape, bytes }: TypedTensor, before: TypedTensor | undefined): TypedTensor => {
  if (before?.bytes.length !== bytes.length) return new TypedTensor(datatype, shape, bytes.slice())
  before.bytes.set(bytes)
  return new TypedTensor(datatype, shape, before.bytes)
}
