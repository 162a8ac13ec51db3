/**
 * The classification extension: the highest values of an output, each with its index and, if the output has labels, its
 * label. The protocol has them as texts: `0.982011:3:cat`.
 */
import { Result } from "effect"
import type { DataType, ElementArrays } from "../tensor/DataType.ts"
import { InvalidRequest } from "../error/InferenceError.ts"
import { ElementWriter } from "./ElementWriter.ts"
import { elementCount, TypedTensor } from "../tensor/TypedTensor.ts"

/** The most class results of one output, all rows together. */
const maxClasses = 1_000_000

/** The most elements of a row, as in Triton. */
const maxElements = 1_000_000

/** Elements that one slice compares or prints: up to about 5 milliseconds. */
const sliceLength = 4_096

/** Work in slices: `next` does one of them, and the last one returns the result. */
export type Slices<A> = Generator<undefined, A>

/**
 * The `count` highest elements of each row, the highest first and of equal ones the lower index first; NaN counts as
 * lowest. `count` is clipped to what a row has, and to 1 from below. The work is done in slices, because a large output
 * takes up to a second.
 * @returns a BYTES tensor of shape [count], or [rows, count] where axis 0 is the batch dimension
 */
export function* classify(
  tensor: TypedTensor,
  count: number,
  options: { readonly batched: boolean; readonly labels: ReadonlyArray<string> | undefined },
): Slices<Result.Result<TypedTensor, InvalidRequest>> {
  const data = ranked(tensor)
  if (data === undefined) {
    const problem = `due to unsupported type '${tensor.datatype}'`
    return Result.fail(new InvalidRequest({ message: `class result not available for output ${problem}` }))
  }
  const rows = options.batched ? (tensor.shape[0] ?? 1) : 1
  const length = options.batched ? elementCount(tensor.shape.slice(1)) : data.length
  const classes = Math.min(Math.max(count, 1), length)
  if (length > maxElements || rows * classes > maxClasses) {
    return Result.fail(new InvalidRequest({ message: "classification output tensor too large" }))
  }
  const print = tensor.datatype === "FP32" || tensor.datatype === "FP64" ? fixed : String
  const texts = new ElementWriter()
  let printed = 0
  for (let row = 0; row < rows; row++) {
    const elements = data.subarray(row * length, (row + 1) * length)
    for (const index of yield* highest(elements, classes)) {
      const value = elements[index] ?? 0
      // A row of one element has no choice among classes: it names the class by its value.
      const label = options.labels?.[length === 1 ? Number(value) : index] ?? ""
      const text = `${print(value)}:${index}`
      texts.write(label === "" ? text : `${text}:${label}`)
      printed += 1
      if (printed % sliceLength === 0) yield
    }
  }
  return Result.succeed(new TypedTensor("BYTES", options.batched ? [rows, classes] : [classes], texts.bytes()))
}

/** Elements that can be compared and printed. */
type Ranked = ElementArrays[Exclude<DataType, "BYTES" | "BOOL" | "FP16" | "BF16">]

const unranked: ReadonlySet<DataType> = new Set<DataType>(["BYTES", "BOOL", "FP16", "BF16"])

const ranked = (tensor: TypedTensor): Ranked | undefined =>
  unranked.has(tensor.datatype) ? undefined : (tensor.data as Ranked)

/**
 * Indices of the `count` highest elements, in order. A heap of the best so far, the last of them on top: n log count,
 * and an element that is not among them costs one comparison.
 */
function* highest(elements: Ranked, count: number): Slices<Uint32Array> {
  const heap = new Uint32Array(count)
  let size = 0
  /** Inserts `index` at the heap's hole, or below it. */
  const sink = (hole: number, index: number): void => {
    let at = hole
    for (;;) {
      let child = 2 * at + 1
      if (child >= size) break
      if (child + 1 < size && precedes(elements, heap[child] ?? 0, heap[child + 1] ?? 0)) child += 1
      if (!precedes(elements, index, heap[child] ?? 0)) break
      heap[at] = heap[child] ?? 0
      at = child
    }
    heap[at] = index
  }
  for (; size < count; size++) heap[size] = size
  for (let at = (count >> 1) - 1; at >= 0; at--) {
    sink(at, heap[at] ?? 0)
    if (at % sliceLength === sliceLength - 1) yield
  }
  for (let index = count; index < elements.length; index++) {
    if (precedes(elements, index, heap[0] ?? 0)) sink(0, index)
    if (index % sliceLength === sliceLength - 1) yield
  }
  // Sorts the heap: repeatedly moves the smallest remaining value behind the heap.
  while (size > 1) {
    const last = heap[0] ?? 0
    size -= 1
    sink(0, heap[size] ?? 0)
    heap[size] = last
    if (size % sliceLength === 0) yield
  }
  return heap
}

const precedes = (elements: Ranked, one: number, other: number): boolean => {
  const [a, b] = [elements[one] ?? 0, elements[other] ?? 0]
  if (a > b) return true
  if (a < b) return false
  const [oneIsNaN, otherIsNaN] = [Number.isNaN(a), Number.isNaN(b)]
  return oneIsNaN === otherIsNaN ? one < other : otherIsNaN
}

/** As C prints with `%f`. */
const fixed = (value: number | bigint): string => {
  const number = Number(value)
  if (Number.isNaN(number)) return "nan"
  const sign = number < 0 || Object.is(number, -0) ? "-" : ""
  const magnitude = Math.abs(number)
  if (magnitude === Infinity) return `${sign}inf`
  // Where toFixed changes to an exponent, all digits stand before the point.
  if (magnitude >= 1e21) return `${sign}${BigInt(magnitude)}.000000`
  const digits = magnitude.toFixed(6)
  // Halfway between two texts, which only odd multiples of 1/128 are, C takes the even one and toFixed the upper one.
  const isHalfway = (magnitude * 128) % 2 === 1
  const last = Number(digits.at(-1))
  return sign + (isHalfway && last % 2 === 1 ? digits.slice(0, -1) + String(last - 1) : digits)
}
