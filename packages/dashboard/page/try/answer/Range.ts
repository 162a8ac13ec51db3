/** Range, mean and histogram of the numbers of a tensor. */

export interface Spread {
  readonly least: number
  readonly most: number
  readonly mean: number
  /** NaN and the infinities, which the others leave out. */
  readonly notFinite: number
}

export const spreadOf = (numbers: ArrayLike<number>): Spread => {
  let [least, most, sum, finite] = [Infinity, -Infinity, 0, 0]
  for (let index = 0; index < numbers.length; index++) {
    const value = numbers[index] ?? 0
    if (!Number.isFinite(value)) continue
    finite += 1
    sum += value
    if (value < least) least = value
    if (value > most) most = value
  }
  return { least, most, mean: sum / finite, notFinite: numbers.length - finite }
}

/** Counts of the finite numbers in buckets of the same width. */
export const histogramOf = (numbers: ArrayLike<number>, { least, most }: Spread, buckets: number): Array<number> => {
  const counts = Array.from<number>({ length: buckets }).fill(0)
  const factor = most > least ? buckets / (most - least) : 0
  for (let index = 0; index < numbers.length; index++) {
    const value = numbers[index] ?? 0
    if (!Number.isFinite(value)) continue
    const bucket = Math.min(buckets - 1, Math.floor((value - least) * factor))
    counts[bucket] = (counts[bucket] ?? 0) + 1
  }
  return counts
}

/** A number as people read it, with about four digits. */
export const short = (value: number): string => {
  if (!Number.isFinite(value) || (Number.isInteger(value) && Math.abs(value) < 1e7)) return String(value)
  return String(Number(value.toPrecision(4)))
}
