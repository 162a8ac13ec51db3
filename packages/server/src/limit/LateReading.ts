/**
 * Refuses requests that were read too late to be answered in time, at their headers: before their body is read, decoded
 * and queued. An overloaded event loop takes longer and longer turns, and what arrives meanwhile waits in the sockets,
 * where no queue sees it. Without this, a server whose front end is the limit answers nothing in time.
 *
 *   turn of the loop     ├─ reads ─┤ replies, batches ├─ reads ──────┤ …
 *   what a read finds              └── has arrived ───────────┘
 *
 * If turns stay long, requests with a deadline are refused once a part of their time has passed. Those without one are
 * never refused here: that other callers left says nothing of them, and a burst makes turns long without an overload.
 */
import { DeadlineExceeded, QueueFull } from "@nereid/core/Errors"
import { sharedRefusal } from "@nereid/core/internal/error/Refusal"
import { performance } from "node:perf_hooks"
import type { LimitReports } from "./LimitReports.ts"

/** The part of a caller's time that may pass before its request is read, while the turns of the loop stay long. */
const share = 0.5

/** Milliseconds that any request may wait: below, a pause of the loop means no overload. */
const tolerated = 20

/** Milliseconds between two turns above which the loop may have slept between them. */
const pause = 1

/** A turn is long if its requests may have waited for more than this, in milliseconds, before it. */
const long = 5

/** So many long turns must follow each other: pauses, such as garbage collections, refuse nothing. */
const enough = 3

/** A turn that has read fewer requests is long for another reason: a cold start, or other programs on its core. */
const crowd = 4

/** The loop and its clock, in milliseconds. */
export interface EventLoop {
  readonly now: () => number
  /** Time that the loop has slept so far. */
  readonly slept: () => number
  /** Calls back once no socket is left to read in this turn. */
  readonly afterReads: (call: () => void) => void
}

const eventLoop: EventLoop = {
  now: () => performance.now(),
  slept: () => performance.eventLoopUtilization().idle,
  afterReads: (call) => void setImmediate(call),
}

export class LateReading {
  readonly #limits: LimitReports
  readonly #loop: EventLoop
  #isReading = false
  /** When the reads of this turn began; negative before the first. */
  #turnAt = -1
  /** Requests that were read in this turn. */
  #reads = 0
  /** Long turns in a row. */
  #longTurns = 0
  /** The earliest time at which what is read in this turn may have arrived. */
  #since = 0
  #slept = 0
  readonly #endReads = () => {
    this.#isReading = false
  }

  constructor(limits: LimitReports, loop: EventLoop = eventLoop) {
    this.#limits = limits
    this.#loop = loop
  }

  /**
   * How long the request whose headers are read now has waited, in milliseconds. It has arrived, on average, in the
   * middle of the time that is possible.
   */
  waited(): number {
    const now = this.#loop.now()
    if (!this.#isReading) this.#beginReads(now)
    this.#reads += 1
    return now - this.#turnAt + (this.#turnAt - this.#since) / 2
  }

  /**
   * Returns the refusal of a request that has waited for too long. `timeout` is the time that its caller has set;
   * undefined for none. Both are in milliseconds. `isBehind`: its connection has more to read than a turn allows.
   */
  refusal(waited: number, timeout: number | undefined, isBehind = false): QueueFull | DeadlineExceeded | undefined {
    if (timeout === undefined || waited <= tolerated) return undefined
    const isOverloaded = (isBehind || this.#longTurns >= enough) && waited > share * timeout
    if (!isOverloaded && waited < timeout) return undefined
    const refusal = waited >= timeout ? passed : refused
    this.#limits.acted("late_reading", refusal.message)
    return refusal
  }

  #beginReads(now: number): void {
    this.#isReading = true
    this.#loop.afterReads(this.#endReads)
    this.#since = this.#turnAt
    if (now - this.#turnAt > pause) {
      const slept = this.#loop.slept()
      // A loop that has slept had read all that had arrived before.
      this.#since = this.#turnAt < 0 ? now : Math.min(now, this.#turnAt + slept - this.#slept)
      this.#slept = slept
    }
    this.#longTurns = now - this.#since > long && this.#reads >= crowd ? this.#longTurns + 1 : 0
    this.#reads = 0
    this.#turnAt = now
  }
}

const refused = sharedRefusal(
  () =>
    new QueueFull({
      message: "The server has too many requests to read, and would answer this one too late",
      retryAfter: 100,
    }),
)

const passed = sharedRefusal(
  () => new DeadlineExceeded({ message: "Deadline Exceeded: the request was read after it" }),
)
