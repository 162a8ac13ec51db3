/** Latencies of repeated requests: percentiles and a histogram. */

export interface Bucket {
  /** Milliseconds, from including and to excluding, but for the last. */
  readonly from: number
  readonly to: number
  readonly count: number
}

/** The smallest value that this share of all sorted values does not exceed; undefined without values. */
export const percentile = (sorted: ReadonlyArray<number>, share: number): number | undefined =>
  sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)]

/**
 * Counts values in buckets of one width, of 1, 2 or 5 times a power of ten. The last bucket has all above the 99th
 * percentile, so that a few late ones do not hide the others.
 */
export const histogram = (values: ReadonlyArray<number>, buckets = 30): ReadonlyArray<Bucket> => {
  const sorted = values.toSorted((one, other) => one - other)
  const [least, most] = [sorted[0], sorted.at(-1)]
  if (least === undefined || most === undefined) return []
  const end = percentile(sorted, 0.99) ?? most
  const width = niceWidth((end - least) / buckets || most / buckets || 1)
  const start = Math.floor(least / width) * width
  const count = Math.floor((end - start) / width) + 1
  const counts = Array.from<number>({ length: count }).fill(0)
  for (const value of sorted) {
    const index = Math.min(count - 1, Math.floor((value - start) / width))
    counts[index] = (counts[index] ?? 0) + 1
  }
  return counts.map((bucket, index) => ({
    from: start + index * width,
    to: index === count - 1 ? Math.max(most, start + count * width) : start + (index + 1) * width,
    count: bucket,
  }))
}

const niceWidth = (width: number): number => {
  const power = 10 ** Math.floor(Math.log10(width))
  return power * ([1, 2, 5, 10].find((factor) => factor * power >= width) ?? 10)
}
