/** Tensors that are made up: of one value, or of random ones. */
import { kindOf, rowOf } from "./Datatype.ts"
import { checkCount, ofNumbers, type Tensor } from "./Tensor.ts"

export interface Range {
  readonly from: number
  readonly to: number
}

/** Usual values of a datatype. Indices, such as those of tokens, are small. */
export const usualRange = (datatype: string): Range => {
  if (datatype === "UINT8") return { from: 0, to: 255 }
  const kind = kindOf(datatype)
  return kind === "float" || kind === "boolean" ? { from: 0, to: 1 } : { from: 0, to: 100 }
}

export const constant = (datatype: string, shape: ReadonlyArray<number>, value: number): Tensor => {
  const count = checkCount(shape)
  if (kindOf(datatype) === "bytes") {
    const element = new TextEncoder().encode(value === 0 ? "" : String(value))
    return { datatype, shape, data: Array.from({ length: count }, () => element) }
  }
  return ofNumbers(datatype, shape, Array.from<number>({ length: count }).fill(value))
}

/** Uniform values of the range, which includes its end for integers. The same seed gives the same values. */
export const random = (datatype: string, shape: ReadonlyArray<number>, seed: number, range: Range): Tensor => {
  const count = checkCount(shape)
  const next = generator(seed)
  const kind = kindOf(datatype)
  if (kind === "bytes") {
    const encoder = new TextEncoder()
    const data = Array.from({ length: count }, () => encoder.encode(Math.floor(next() * 1e9).toString(36)))
    return { datatype, shape, data }
  }
  const { from, to } = clamped(range, datatype)
  const isFloat = kind === "float"
  const values = Float64Array.from({ length: count }, () =>
    isFloat ? from + next() * (to - from) : Math.floor(from + next() * (to - from + 1)),
  )
  return ofNumbers(datatype, shape, values)
}

const clamped = ({ from, to }: Range, datatype: string): Range => {
  const { kind, range: [minimum, maximum] = [] } = rowOf(datatype)
  const [least, most] = kind === "boolean" ? [0, 1] : [Number(minimum ?? -Infinity), Number(maximum ?? Infinity)]
  if (kind === "float") return { from, to }
  // The largest integers of 64 bits are no doubles; those that are random need not be the largest.
  const limit = Number.MAX_SAFE_INTEGER
  const within = (value: number) =>
    Math.trunc(Math.max(least, Math.min(most, Math.max(-limit, Math.min(limit, value)))))
  return { from: within(from), to: within(to) }
}

/** Mulberry32: random numbers of 0 to 1. */
const generator = (seed: number): (() => number) => {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
}
