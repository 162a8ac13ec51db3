/**
 * Quantiles of all durations of the last minute, in constant memory. Durations are counted in logarithmic bins, in time
 * slots of which `rotate` empties the oldest. Quantiles are accurate to one per cent. Effect's own summary keeps a
 * limited number of observations, so under load it would cover only the last instants.
 */

/** A slot stands for `rotationSeconds`; together they are the minute. */
const slotCount = 5

/** Interval between calls of `rotate`, in seconds. */
export const rotationSeconds = 12

/** From one bin to the next, a factor. Its middle is at most one per cent from its ends. */
const growth = 1.02

/** Upper bound of the last bin, in microseconds: an hour. */
const maxMicroseconds = 3.6e9

const perBin = 1 / Math.log(growth)

/** Bin 0 is what took less than a microsecond. */
const binOf = (microseconds: number): number => (microseconds < 1 ? 0 : 1 + Math.floor(Math.log(microseconds) * perBin))

const binCount = binOf(maxMicroseconds) + 1

const middleOf = (bin: number): number => (bin === 0 ? 0 : growth ** (bin - 0.5))

export class SlidingQuantiles {
  readonly #slots = Array.from({ length: slotCount }, () => new Uint32Array(binCount))
  #current = 0
  /** Number of observations since the start. */
  count = 0
  sum = 0

  /** Above an hour counts as an hour in the quantiles. */
  observe(microseconds: number): void {
    const bin = Math.min(binOf(microseconds), binCount - 1)
    const slot = this.#slots[this.#current]
    if (slot !== undefined) slot[bin] = (slot[bin] ?? 0) + 1
    this.count += 1
    this.sum += microseconds
  }

  /** Forgets the oldest slot. */
  rotate(): void {
    this.#current = (this.#current + 1) % slotCount
    this.#slots[this.#current]?.fill(0)
  }

  /**
   * Microseconds that this part of the observations does not exceed, in the order of `quantiles`; NaN for none at all.
   */
  at(quantiles: ReadonlyArray<number>): ReadonlyArray<number> {
    const bins = new Uint32Array(binCount)
    for (const slot of this.#slots) for (const [bin, count] of slot.entries()) bins[bin] = (bins[bin] ?? 0) + count
    const total = bins.reduce((sum, count) => sum + count, 0)
    return quantiles.map((quantile) => {
      if (total === 0) return Number.NaN
      const rank = Math.max(1, Math.ceil(quantile * total))
      let below = 0
      return middleOf(bins.findIndex((count) => (below += count) >= rank))
    })
  }
}
