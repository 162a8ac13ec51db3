/**
 * Duration of a batch by its rows, learned from the batches that have ended: a line through recent durations, and the
 * part of it that a quarter of the batches stay below. Older batches count less. They are forgotten once several in a
 * row show that durations have changed, for example after the slow first ones of a process. Pure data, in any unit of
 * time.
 */

/** So many batches must have ended: the first ones may be slower by far. */
const enough = 4

/** Batches in a row with under half or over twice the expected time, before older ones are forgotten. */
const changedAfter = 3

/** A batch counts with at most so many times its expected duration: a single pause says nothing of other batches. */
const maxSurprise = 4

/** The weight that a batch loses with each batch after it: about the last 32 count. */
const loss = 1 / 32

/** The line is flat, or too uncertain, if the sizes of batches vary less than this around their mean. */
const minVariation = 0.05

/** So many batches of four take less than `low`. */
const lowQuantile = 0.25

/** Change of the low duration by one batch, as a part of it. */
const lowStep = 0.1

export class BatchCosts {
  #batches = 0
  /** Batches in a row that took far longer than expected; negative for less long. */
  #surprises = 0
  #weight = 0
  #rows = 0
  #time = 0
  #rowsSquared = 0
  #product = 0
  /** The low duration as a part of the mean. */
  #low = 1

  /** Whether enough batches have ended. */
  get isKnown(): boolean {
    return this.#batches >= enough
  }

  /** A batch with these rows has ended after this time. */
  learn(rows: number, time: number): void {
    this.#batches += 1
    const expected = this.mean(rows)
    // While the time of a row is unknown, it may be anything between nothing and the whole duration.
    const ratio = this.#weight > 0 && this.#slope() === undefined ? (rows * this.#weight) / this.#rows : 1
    const most = expected * Math.max(1, ratio)
    const isChange = this.#notice(time < expected * Math.min(1, ratio) * 0.5 ? -1 : time > most * 2 ? 1 : 0)
    if (!isChange) this.#learnLow(time / expected)
    const keep = isChange ? 0 : 1 - loss
    if (!isChange && expected > 0) time = Math.min(time, maxSurprise * most)
    this.#weight = this.#weight * keep + 1
    this.#rows = this.#rows * keep + rows
    this.#time = this.#time * keep + time
    this.#rowsSquared = this.#rowsSquared * keep + rows * rows
    this.#product = this.#product * keep + rows * time
  }

  /** Mean duration of a batch with these rows; 0 before the first batch. */
  mean(rows: number): number {
    if (this.#weight === 0) return 0
    const meanRows = this.#rows / this.#weight
    const mean = this.#time / this.#weight
    const slope = this.#slope()
    // One size says nothing of another: assume that the size does not matter, until a batch shows that it does.
    if (slope === undefined) return mean
    const intercept = mean - slope * meanRows
    return intercept < 0 ? (mean * rows) / meanRows : intercept + slope * rows
  }

  /** A duration that a quarter of the batches with these rows stay below. */
  low(rows: number): number {
    return this.mean(rows) * this.#low
  }

  /** Whether this surprise, in this direction, is one of so many that durations have changed. */
  #notice(direction: -1 | 0 | 1): boolean {
    const goesOn = direction !== 0 && direction * this.#surprises > 0
    this.#surprises = goesOn ? this.#surprises + direction : direction
    if (Math.abs(this.#surprises) < changedAfter) return false
    this.#surprises = 0
    return true
  }

  #learnLow(ratio: number): void {
    if (!Number.isFinite(ratio)) return
    // Not beyond the ratio: equal durations have no spread.
    const stepped =
      ratio > this.#low
        ? Math.min(ratio, this.#low * (1 + lowQuantile * lowStep))
        : Math.max(ratio, this.#low * (1 - (1 - lowQuantile) * lowStep))
    this.#low = Math.min(1, stepped)
  }

  /** Time for each further row; undefined if the batches had about the same rows. */
  #slope(): number | undefined {
    const meanRows = this.#rows / this.#weight
    const variance = this.#rowsSquared / this.#weight - meanRows * meanRows
    if (variance < (minVariation * meanRows) ** 2) return undefined
    const covariance = this.#product / this.#weight - meanRows * (this.#time / this.#weight)
    return Math.max(0, covariance / variance)
  }
}
