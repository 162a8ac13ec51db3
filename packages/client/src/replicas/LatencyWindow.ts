/** Response times of the last minute as a histogram, for percentiles within 5 %. */

/** Time that one of the two histograms is filled, in milliseconds. */
const period = 30_000

/** Responses without which a percentile would be chance. */
const minCount = 100

/** Bounds of neighbouring buckets differ by this factor. */
const growth = 1.1

/** From 0.01 ms to 11 hours. */
const buckets = 230

const smallest = 0.01

export class LatencyWindow {
  #current = new Uint32Array(buckets)
  #previous = new Uint32Array(buckets)
  #count = 0
  #previousCount = 0
  #startedAt = 0

  record(millis: number, now: number): void {
    this.#turn(now)
    const index = Math.ceil(Math.log(Math.max(millis, smallest) / smallest) / Math.log(growth))
    const bucket = Math.min(index, buckets - 1)
    this.#current[bucket] = (this.#current[bucket] ?? 0) + 1
    this.#count += 1
  }

  /** Returns a percentile, from 0 to 100, in milliseconds; undefined while there are fewer than 100 responses. */
  percentile(percent: number, now: number): number | undefined {
    this.#turn(now)
    const total = this.#count + this.#previousCount
    if (total < minCount) return undefined
    let left = (total * percent) / 100
    for (let index = 0; index < buckets; index++) {
      left -= (this.#current[index] ?? 0) + (this.#previous[index] ?? 0)
      if (left <= 0) return smallest * growth ** index
    }
    return undefined
  }

  #turn(now: number): void {
    const elapsed = now - this.#startedAt
    if (elapsed < period) return
    const isStale = elapsed >= 2 * period
    const oldest = this.#previous
    this.#previous = isStale ? this.#current.fill(0) : this.#current
    this.#previousCount = isStale ? 0 : this.#count
    this.#current = oldest.fill(0)
    this.#count = 0
    this.#startedAt = now
  }
}
