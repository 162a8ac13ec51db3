/**
 * The rows that a batch takes at most while more wait, learned from the durations of batches. Larger batches are not
 * always faster for each row, and a batch that takes most of the time of its requests leaves the next ones none. Pure
 * data without a clock; times are durations, in one unit.
 *
 *   size       1   2   3   4   6   8   12  16  24  32
 *   per row    ·   9   ·   6   ·   4   5   7   ·   9     learned, or not tried yet
 *                                  └ the limit
 *
 * While more rows wait than the limit, other sizes are tried from time to time: each so rarely that it wastes a small
 * part of all time. Nothing is cut while all that wait fit into the limit, and nothing for requests whose answers are
 * never late: trials would cost them, and their callers have time.
 */

/** A batch counts as the last one of at most so many of its size. */
const memory = 16

/** A batch counts with at most so many times the usual time: a single pause says nothing of its size. */
const maxSurprise = 4

/** Sizes whose rows take this much longer than the fastest ones are as good, if they are the largest or smaller. */
const largestTolerance = 1.05
const smallerTolerance = 1.02

/** The part of the time of a request that its batch takes at most, and should take if that costs little throughput. */
const maxShare = 0.8
const goodShare = 0.5

/** Throughput that `goodShare` may cost, as a part. */
const maxCost = 0.1

/** The part of all time that trials may waste while sizes are new, and that those of one size may waste later. */
const newShare = 1 / 25
const trialShare = 1 / 1000

/** Batches in a row that have left others behind, before the first trial: a burst needs none. */
const crowded = 16

/** A size is tried if it may be so much faster. */
const worthwhile = 1.05

/** Batches from one trial to the next, of any size, and of one size. */
const trialGap = 3
const sizeGap = 64

/** Batches from one choice to the next, while all that wait fit into a batch. */
const quietGap = 8

/** Batches after the last request with a time limit until none is known. */
const timeMemory = 256

/** A new time limit counts this part. */
const timeShare = 1 / 32

interface Size {
  readonly rows: number
  /** Means of the last batches, and how many these are. Without any, an estimate; a time of 0 if there is none. */
  meanRows: number
  time: number
  count: number
  /** Time of all batches, and their number, at the last one of this size. */
  lastTime: number
  lastBatch: number
}

export class BatchLimit {
  readonly #sizes: ReadonlyArray<Size>
  readonly #largest: Size
  #chosen: Size
  /** Batches that have ended, and their time. */
  #batches = 0
  #elapsed = 0
  /** The same of the next trial, of any size. */
  #nextTime = 0
  #nextBatch = 0
  /** Batches in a row for which more rows waited than the limit. */
  #crowd = 0
  /** Usual time until the answer to a request would be late; infinite if none is known. */
  #limit = Infinity
  /** Batches at the last such request. */
  #limitBatch = 0

  constructor(maxBatchSize: number) {
    const size = (rows: number): Size => ({ rows, meanRows: 0, time: 0, count: 0, lastTime: 0, lastBatch: 0 })
    this.#largest = this.#chosen = size(maxBatchSize)
    this.#sizes = [...smallerSizes(maxBatchSize).map(size), this.#largest]
  }

  /** Rows of a batch at most, while more wait. */
  get rows(): number {
    return (this.#limit === Infinity ? this.#largest : this.#chosen).rows
  }

  /** The same of the batch that starts now, if so many wait: it may be a trial. */
  next(waiting: number): number {
    const chosen = this.#chosen
    if (this.#limit === Infinity) return this.#largest.rows
    this.#crowd = waiting > chosen.rows ? this.#crowd + 1 : 0
    if (this.#crowd <= crowded || this.#batches < this.#nextBatch || this.#elapsed < this.#nextTime) return chosen.rows
    let trial: Size | undefined
    /** Time of the next smaller size that is known: a larger batch takes no less. */
    let least = 0
    for (const size of this.#sizes) {
      const isWorthwhile = least * worthwhile < size.rows * perRow(chosen)
      least = Math.max(least, isKnown(size) ? size.time : 0)
      if (size === chosen || size.rows > waiting || !isWorthwhile) continue
      if (isKnown(size) && !this.#isOld(size)) continue
      // Of those that were never tried, the largest goes first.
      if (trial === undefined || size.lastTime <= trial.lastTime) trial = size
    }
    if (trial === undefined) return chosen.rows
    this.#nextBatch = this.#batches + trialGap
    return trial.rows
  }

  /** A request that has to wait has this much time left until its answer is late. */
  arrived(left: number): void {
    if (left <= 0 || left === Infinity) return
    this.#limitBatch = this.#batches
    this.#limit = this.#limit === Infinity ? left : this.#limit + (left - this.#limit) * timeShare
  }

  /** A batch with these rows has ended after this time. One that takes none says nothing. */
  learn(rows: number, time: number): void {
    if (time <= 0) return
    const size = this.#sizes.find((other) => other.rows >= rows) ?? this.#largest
    this.#batches += 1
    this.#elapsed += time
    if (this.#batches > this.#limitBatch + timeMemory) this.#limit = Infinity
    // The model has become faster, as after its first batches: nothing that was learned holds.
    if (time < size.time / 2) for (const other of this.#sizes) other.count = other.time = 0
    const most = size.count > 0 ? maxSurprise * size.time : Infinity
    size.count = Math.min(memory, size.count + 1)
    size.time += (Math.min(time, most) - size.time) / size.count
    size.meanRows += (rows - size.meanRows) / size.count
    if (this.#crowd > 0 || this.#batches % quietGap === 0) {
      this.#estimate()
      this.#choose()
    }
    const wasted = Math.max(0, time - rows * perRow(this.#chosen))
    if (size !== this.#chosen) this.#nextTime = this.#elapsed + wasted / newShare
    size.lastTime = this.#elapsed
    size.lastBatch = this.#batches
  }

  /** Whether a trial of this size wastes little enough since its last batch. */
  #isOld(size: Size): boolean {
    const wasted = Math.max(0, size.time - size.meanRows * perRow(this.#chosen))
    return this.#batches >= size.lastBatch + sizeGap && this.#elapsed >= size.lastTime + wasted / trialShare
  }

  /** Sizes between those that are known take a time between theirs, until they are tried. */
  #estimate(): void {
    const known = this.#sizes.filter(isKnown)
    for (const size of this.#sizes) {
      if (isKnown(size)) continue
      const smaller = known.findLast(({ rows }) => rows < size.rows)
      const larger = known.find(({ rows }) => rows > size.rows)
      size.meanRows = size.rows
      size.time = 0
      if (smaller === undefined || larger === undefined) continue
      const part = (size.rows - smaller.meanRows) / (larger.meanRows - smaller.meanRows)
      size.time = smaller.time + part * Math.max(0, larger.time - smaller.time)
    }
  }

  #choose(): void {
    const largest = this.#sizes.findLast(isKnown)
    const all = this.#fastest(maxShare * this.#limit)
    if (largest === undefined) return
    if (all === undefined) {
      // All that were tried take too long. If that is so of a single row, no size helps.
      this.#chosen = this.#sizes[this.#sizes.findIndex(isKnown) - 1] ?? this.#largest
      return
    }
    const good = this.#fastest(goodShare * this.#limit)
    const isGood = good !== undefined && perRow(good) * (1 - maxCost) <= perRow(all)
    const most = (isGood ? goodShare : maxShare) * this.#limit
    const fastest = perRow(isGood ? good : all)
    const isAsGood = (size: Size, tolerance: number) =>
      size.time > 0 && size.time <= most && perRow(size) <= fastest * tolerance
    // If the largest size that was tried is as good, a larger one may be even better.
    this.#chosen = isAsGood(largest, largestTolerance)
      ? this.#largest
      : (this.#sizes.find((size) => isAsGood(size, smallerTolerance)) ?? this.#chosen)
  }

  /** The size with the most rows in a time, of those whose batch takes no longer than `most`. */
  #fastest(most: number): Size | undefined {
    let fastest: Size | undefined
    for (const size of this.#sizes) {
      if (size.time === 0 || size.time > most) continue
      if (fastest === undefined || perRow(size) < perRow(fastest)) fastest = size
    }
    return fastest
  }
}

const isKnown = ({ count }: Size): boolean => count > 0

/** The time of a row in batches of this size; infinite without an estimate. */
const perRow = ({ meanRows, time }: Size): number => (time === 0 ? Infinity : time / meanRows)

/** 1, 2, 3, 4, 6, 8, 12, 16, …, without those that differ little from the largest. */
const smallerSizes = (largest: number): ReadonlyArray<number> => {
  const sizes: Array<number> = []
  for (let power = 1; power < 0.85 * largest; power *= 2) {
    sizes.push(power)
    if (power > 1 && 1.5 * power < 0.85 * largest) sizes.push(1.5 * power)
  }
  return sizes
}
