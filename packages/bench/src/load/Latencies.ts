/** How long replies took, in a histogram of fixed memory: three significant digits, from a nanosecond on. */
import { createHistogram, type RecordableHistogram } from "node:perf_hooks"

export class Latencies {
  readonly #histogram: RecordableHistogram = createHistogram()

  record(milliseconds: number): void {
    this.#histogram.record(Math.max(1, Math.round(milliseconds * 1e6)))
  }

  get count(): number {
    return this.#histogram.count
  }

  /** Mean in milliseconds, as all figures here; NaN without latencies. */
  get mean(): number {
    return this.count === 0 ? Number.NaN : this.#histogram.mean / 1e6
  }

  get min(): number {
    return this.count === 0 ? Number.NaN : this.#histogram.min / 1e6
  }

  get max(): number {
    return this.count === 0 ? Number.NaN : this.#histogram.max / 1e6
  }

  /** The time that so many in a hundred took at most. */
  percentile(percentage: number): number {
    return this.count === 0 ? Number.NaN : this.#histogram.percentile(percentage) / 1e6
  }
}
