/**
 * Latencies as a sparse histogram with logarithmic buckets. Histograms of several seconds or models add up to one, from
 * which any quantile follows with an error of at most 4 %. The server counts, and the page reads.
 *
 *   bucket 0: up to 1 µs    bucket n: growth^(n - 1) to growth^n µs    last bucket: everything from 90 seconds
 */

/** Pairs of a bucket and its number of requests, one behind the other, the lowest bucket first. */
export type LatencyHistogram = ReadonlyArray<number>

/** Ratio between the bounds of a bucket. */
export const growth = 1.08

/** Number of buckets. */
export const bucketCount = 240

const scale = 1 / Math.log(growth)

/** Returns the bucket of a duration in microseconds. */
export const bucketOf = (micros: number): number =>
  micros <= 1 ? 0 : Math.min(bucketCount - 1, Math.ceil(Math.log(micros) * scale))

/** Returns the middle of a bucket, in microseconds: at most 4 % from any duration in it. */
export const microsOf = (bucket: number): number => (bucket === 0 ? 1 : growth ** (bucket - 0.5))

/** Returns the sum of histograms. */
export const merge = (histograms: Iterable<LatencyHistogram>): LatencyHistogram => {
  const counts = new Uint32Array(bucketCount)
  for (const histogram of histograms) {
    for (let at = 0; at + 1 < histogram.length; at += 2) {
      const bucket = histogram[at] ?? 0
      counts[bucket] = (counts[bucket] ?? 0) + (histogram[at + 1] ?? 0)
    }
  }
  return sparse(counts)
}

/** Returns the buckets that are not empty. `counts` has one element per bucket. */
export const sparse = (counts: Uint32Array): LatencyHistogram => {
  const histogram: Array<number> = []
  for (let bucket = 0; bucket < counts.length; bucket++) {
    const count = counts[bucket] ?? 0
    if (count > 0) histogram.push(bucket, count)
  }
  return histogram
}

/** Returns the number of requests. */
export const countOf = (histogram: LatencyHistogram): number => {
  let count = 0
  for (let at = 1; at < histogram.length; at += 2) count += histogram[at] ?? 0
  return count
}

/** Returns a quantile in microseconds, such as 0.99 for p99; undefined for a histogram without requests. */
export const quantileOf = (histogram: LatencyHistogram, quantile: number): number | undefined => {
  const rank = Math.max(1, Math.ceil(quantile * countOf(histogram)))
  let count = 0
  for (let at = 0; at + 1 < histogram.length; at += 2) {
    count += histogram[at + 1] ?? 0
    if (count >= rank) return microsOf(histogram[at] ?? 0)
  }
  return undefined
}
