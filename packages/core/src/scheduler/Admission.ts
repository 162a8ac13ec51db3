/**
 * Predicts when a request would be answered, and says whether that is in time. An overloaded server refuses requests
 * that would be late, so that it answers the rest in time. Pure data without a clock: times are arguments, in
 * nanoseconds. Scheduler.ts asks, and Dispatcher.ts and RunningBatch.ts report what has happened.
 *
 *   completion = rest of the running batches ─┐
 *              + full batches ahead in queue  ├─ shared by all slots of the instances
 *              + the own batch ───────────────┘
 *              + margin for the error of earlier predictions
 */
import { BatchCosts } from "./BatchCosts.ts"
import { BatchLimit } from "./BatchLimit.ts"
import { LatenessMargin } from "./LatenessMargin.ts"
import { StandingQueue } from "./StandingQueue.ts"

/** The queue and the instances at the time of a prediction. */
export interface Load {
  readonly now: number
  /** Rows of the request. */
  readonly rows: number
  /** Rows that wait and go first. */
  readonly rowsAhead: number
  /** Batches that the instances execute at one time. */
  readonly slots: number
  /** Those of them that are free. */
  readonly free: number
  /** Longest time in the queue, by its queue timeout. */
  readonly longestWait: number
}

/**
 * Largest part of the remaining time that the margin may take. If durations vary by more than that, some requests are
 * late, but the instances always have work.
 */
const maxMarginShare = 0.3

/**
 * Time until an answer in a queue that stands: a part of the remaining time, or that of so many full batches, one of
 * which runs, and a pause of the event loop.
 */
const standingShare = 0.3
const standingBatches = 4
const standingPause = 10e6

/** Time after the last batch until what was learned is forgotten. */
const maxAge = 60e9

/** The part by which the usual rows of a full batch follow each batch. */
const rowsShare = 1 / 16

/** How a batch ends. */
export type BatchEnd = "complete" | "interrupted" | "failed"

export class Admission {
  #costs = new BatchCosts()
  #margin = new LatenessMargin()
  readonly #maxBatchSize: number
  readonly #learnsRows: boolean
  /** Rows of the next batch that end in time together. */
  rowsInTime = Infinity
  #limit: BatchLimit
  readonly #standing = new StandingQueue()
  /** Usual rows of a batch if more than that wait. */
  #fullRows: number
  #running = 0
  /** The sum of the expected ends of the running batches. */
  #expectedEnds = 0
  #lastEnd = Infinity

  /** `learnsRows`: the queue takes batches of `nextRows`. Otherwise it takes those that are declared. */
  constructor(maxBatchSize: number, learnsRows: boolean) {
    this.#learnsRows = learnsRows
    this.#fullRows = maxBatchSize
    this.#maxBatchSize = maxBatchSize
    this.#limit = new BatchLimit(maxBatchSize)
  }

  /** Rows of a batch at most, while more wait. */
  get maxRows(): number {
    return this.#limit.rows
  }

  /** The same for the batch that starts now, which may be a trial of another size. */
  nextRows(waiting: number): number {
    return Math.min(this.#limit.next(waiting), this.rowsInTime)
  }

  /** Time until the answer to a request; undefined if it need not wait for a running batch, or if nothing is known. */
  predict({ now, rows, rowsAhead, slots, free, longestWait }: Load): number | undefined {
    if (!this.#costs.isKnown || slots === 0 || this.#isStale(now)) return undefined
    const fullRows = Math.min(this.#fullRows, this.#limit.rows)
    const batchesAhead = Math.floor(rowsAhead / fullRows)
    if (batchesAhead < free) {
      this.#standing.admits("short", now)
      return undefined
    }
    const fullBatch = this.#costs.mean(fullRows)
    // At most one batch for each slot: batches may have been expected to end later than they are now, or may run on
    // instances that were replaced.
    const rest = Math.min(Math.max(0, this.#expectedEnds - this.#running * now), slots * fullBatch)
    const waiting = (batchesAhead - free) * fullBatch
    const ownRows = batchesAhead === 0 ? Math.min(rowsAhead + rows, fullRows) : fullRows
    return Math.min((rest + waiting) / slots, longestWait) + this.#costs.low(ownRows)
  }

  /**
   * Whether a request with so much time left is answered in time, by its prediction. If the queue stands, in a part of
   * that time.
   */
  isInTime(predicted: number, left: number, now: number): boolean {
    this.#limit.arrived(left)
    const short = standingPause + standingBatches * this.#costs.mean(Math.min(this.#fullRows, this.#limit.rows))
    const isLate = predicted + Math.min(this.#margin.value, maxMarginShare * left) > left
    const isLong = predicted > Math.max(short, standingShare * left)
    return this.#standing.admits(isLate ? "late" : isLong ? "long" : "short", now)
  }

  /** Whether a request of a batch with these rows, which starts now, can be answered in the time that is left. */
  canEnd(rows: number, left: number): boolean {
    return !this.#costs.isKnown || this.shortest(rows) <= left
  }

  /** The time that a batch with these rows takes at least. */
  shortest(rows: number): number {
    return this.#costs.low(rows)
  }

  /** A batch starts. Returns its expected end, for `ended`. */
  started(rows: number, now: number): number {
    if (this.#isStale(now)) {
      this.#costs = new BatchCosts()
      this.#margin = new LatenessMargin()
      this.#limit = new BatchLimit(this.#maxBatchSize)
    }
    const end = now + this.#costs.mean(rows)
    this.#running += 1
    this.#expectedEnds += end
    return end
  }

  /** A batch has ended. An interrupted one would have taken at least this duration; a failed one teaches nothing. */
  ended(expectedEnd: number, rows: number, now: number, duration: number, end: BatchEnd): void {
    this.#running -= 1
    this.#lastEnd = now
    this.#expectedEnds = this.#running === 0 ? 0 : this.#expectedEnds - expectedEnd
    const isKnown = end === "complete" || (end === "interrupted" && duration > this.#costs.mean(rows))
    if (isKnown && rows > 0) this.#costs.learn(rows, duration)
    if (this.#learnsRows && end === "complete" && rows > 0) this.#limit.learn(rows, duration)
  }

  /** A batch takes these rows. It is full if it leaves other requests behind. */
  taken(rows: number, isFull: boolean): void {
    if (isFull || rows > this.#fullRows) this.#fullRows += (rows - this.#fullRows) * rowsShare
  }

  /** The caller of a request has left, this much later than its predicted end. */
  abandoned(lateness: number): void {
    if (lateness > this.#margin.value) this.answered(lateness)
  }

  /** A request has ended this much later than predicted. */
  answered(lateness: number): void {
    this.#margin.ended(lateness, this.#costs.mean(this.#fullRows))
  }

  #isStale(now: number): boolean {
    return this.#running === 0 && now - this.#lastEnd > maxAge
  }
}
