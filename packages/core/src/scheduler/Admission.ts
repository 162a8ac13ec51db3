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
import { LatenessMargin } from "./LatenessMargin.ts"

/** The queue and the instances at the time of a prediction. */
export interface Load {
  readonly now: number
  /** Rows that wait and go first. */
  readonly rowsAhead: number
  /** Batches that the instances execute at one time. */
  readonly slots: number
}

/**
 * Largest part of the remaining time that the margin may take. If durations vary by more than that, some requests are
 * late, but the instances always have work.
 */
const maxMarginShare = 0.3

/** The part by which the usual rows of a full batch follow each batch. */
const rowsShare = 1 / 16

export class Admission {
  readonly #costs = new BatchCosts()
  readonly #margin = new LatenessMargin()
  /** Usual rows of a batch that left requests behind in the queue. */
  #fullRows: number
  #running = 0
  /** The sum of the expected ends of the running batches. */
  #expectedEnds = 0

  constructor(maxBatchSize: number) {
    this.#fullRows = maxBatchSize
  }

  /** Time until the answer to a request; undefined if it need not wait for a running batch, or if nothing is known. */
  predict({ now, rowsAhead, slots }: Load): number | undefined {
    if (!this.#costs.isKnown || slots === 0) return undefined
    const batchesAhead = Math.floor(rowsAhead / this.#fullRows)
    const free = Math.max(0, slots - this.#running)
    if (batchesAhead < free) return undefined
    const rest = Math.max(0, this.#expectedEnds - this.#running * now)
    const waiting = (batchesAhead - free) * this.#costs.mean(this.#fullRows)
    return (rest + waiting) / slots + this.#costs.low(this.#fullRows)
  }

  /** Whether a request with so much time left is answered in time, by its prediction. */
  isInTime(predicted: number, left: number): boolean {
    return predicted + Math.min(this.#margin.value, maxMarginShare * left) <= left
  }

  /** Whether a request of a batch with these rows, which starts now, can be answered in the time that is left. */
  canEnd(rows: number, left: number): boolean {
    return this.shortest(rows) <= left
  }

  /** The time that a batch with these rows takes at least. */
  shortest(rows: number): number {
    return this.#costs.low(rows)
  }

  /** A batch starts. Returns its expected end, for `ended`. */
  started(rows: number, now: number): number {
    const end = now + this.#costs.mean(rows)
    this.#running += 1
    this.#expectedEnds += end
    return end
  }

  /** A batch has ended. An interrupted one would have taken at least this duration; a failed one teaches nothing. */
  ended(expectedEnd: number, rows: number, duration: number, end: "complete" | "interrupted" | "failed"): void {
    this.#running -= 1
    this.#expectedEnds = this.#running === 0 ? 0 : this.#expectedEnds - expectedEnd
    const isKnown = end === "complete" || (end === "interrupted" && duration > this.#costs.mean(rows))
    if (isKnown && rows > 0) this.#costs.learn(rows, duration)
  }

  /** A batch with these rows has left other requests behind in the queue. */
  leftBehind(rows: number): void {
    this.#fullRows += (rows - this.#fullRows) * rowsShare
  }

  /** The caller of a request has left, this much later than its predicted end. */
  abandoned(lateness: number): void {
    if (lateness > this.#margin.value) this.answered(lateness)
  }

  /** A request has ended this much later than predicted. */
  answered(lateness: number): void {
    this.#margin.ended(lateness, this.#costs.mean(this.#fullRows))
  }
}
