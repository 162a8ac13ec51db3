/**
 * Converts a classifier's outputs to probabilities and classes. Functions of plain numbers, for handlers;
 * Classification.ts implements the classification extension.
 *
 * Each takes a typed array, such as `tensor.data`, or an array. For a whole batch, `softmax` and `argmax` also take the
 * number of classes, the length of one row.
 */

/** A typed array or an array of numbers. */
export type Numbers = ArrayLike<number>

/**
 * Converts logits to probabilities, which add up to 1 in each row of `classes` values. Default: one row. Large logits
 * do not overflow.
 * @throws RangeError if the length is not a multiple of `classes`
 */
export const softmax = (logits: Numbers, classes = logits.length): Float32Array<ArrayBuffer> => {
  const probabilities = new Float32Array(logits.length)
  for (const start of rows(logits, classes)) {
    const end = start + classes
    let largest = -Infinity
    for (let index = start; index < end; index++) largest = Math.max(largest, at(logits, index))
    let sum = 0
    for (let index = start; index < end; index++) sum += Math.exp(at(logits, index) - largest)
    for (let index = start; index < end; index++) probabilities[index] = Math.exp(at(logits, index) - largest) / sum
  }
  return probabilities
}

/** Converts each logit to an independent probability, for classes that do not exclude each other. */
export const sigmoid = (logits: Numbers): Float32Array<ArrayBuffer> => {
  const probabilities = new Float32Array(logits.length)
  for (let index = 0; index < logits.length; index++) probabilities[index] = 1 / (1 + Math.exp(-at(logits, index)))
  return probabilities
}

/** The index of the largest value, the first of equal ones; NaN is ignored. -1 if there is none. */
export const argmax = (values: Numbers): number => largest(values, 0, values.length)

/**
 * The index of the largest value in each row of `classes` values, relative to the start of the row.
 * @throws RangeError if the length is not a multiple of `classes`
 */
export const argmaxRows = (values: Numbers, classes: number): ReadonlyArray<number> =>
  rows(values, classes).map((start) => {
    const found = largest(values, start, start + classes)
    return found < 0 ? -1 : found - start
  })

/** A value, and its index among all values. */
export interface Ranked {
  readonly index: number
  readonly value: number
}

/**
 * The `count` largest values, in descending order, the first of equal ones first; fewer if there are not enough.
 * Excludes NaN.
 */
export const topK = (values: Numbers, count: number): ReadonlyArray<Ranked> =>
  Array.from(values, (value, index): Ranked => ({ index, value }))
    .filter(({ value }) => !Number.isNaN(value))
    .toSorted((a, b) => b.value - a.value || a.index - b.index)
    .slice(0, Math.max(0, count))

const largest = (values: Numbers, start: number, end: number): number => {
  let found = -1
  for (let index = start; index < end; index++) {
    const value = at(values, index)
    if (!Number.isNaN(value) && (found < 0 || value > at(values, found))) found = index
  }
  return found
}

/** Where each row begins. */
const rows = (values: Numbers, classes: number): ReadonlyArray<number> => {
  if (values.length === 0) return []
  if (!Number.isInteger(classes) || classes < 1 || values.length % classes !== 0) {
    throw new RangeError(`${values.length} values are not a multiple of ${classes} classes`)
  }
  return Array.from({ length: values.length / classes }, (_, row) => row * classes)
}

/** Within the bounds that the loops keep. */
const at = (values: Numbers, index: number): number => values[index] ?? 0
