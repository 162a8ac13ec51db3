/**
 * Limit on the calls that the client of one HTTP/2 connection cancels before their response. A flood of them (rapid
 * reset, CVE-2023-44487) makes the server begin work that it never finishes, beyond its limit of concurrent streams.
 *
 * The limit is a proportion with a burst. Proxies share one connection among many clients, and clients with tight
 * deadlines cancel most of their calls, so a fixed rate such as node:http2's (33 a second) would end innocent calls.
 * A call that is cancelled at its own deadline is free: the server would have ended it at that moment, too.
 *
 * A server that stood still reads at once what was cancelled over that time. So that time allows its cancellations
 * beyond the burst, at the same rate: over the whole time of a connection, they are not more than without it.
 */

/** Cancellations that a connection may always send at once. */
const burst = 10_000

/** Cancellations per second that a connection may send without completing a call. */
const perSecond = 500

/** Cancellations that a completed call allows. */
const perCompletedCall = 100

/**
 * Cancellations that all calls in flight allow together. A client that cancels 5,000 calls a second sends this many
 * while a busy server reads nothing for 20 s.
 */
const maxInFlight = 100_000

/** Cancellations beyond the burst that standstills allow together: those of 200 s. */
const maxAfterStandstill = 100_000

export class ResetBudget {
  readonly #now: () => number
  readonly #stoodStill: () => number
  #remaining = burst
  #refilledAt: number
  #stoodBefore: number

  /**
   * `stoodStill`: time of all standstills of the server so far, and `stoodBefore` of those before the connection.
   * `now`: monotonic time. All are in milliseconds.
   */
  constructor(stoodStill: () => number, stoodBefore = 0, now: () => number = () => performance.now()) {
    this.#now = now
    this.#stoodStill = stoodStill
    this.#refilledAt = now()
    this.#stoodBefore = stoodBefore
  }

  /** A call has ended with a response. */
  completed(): void {
    if (this.#remaining < burst) this.#remaining = Math.min(burst, this.#remaining + perCompletedCall)
  }

  /**
   * The client has cancelled a call. Returns false if the connection has cancelled too many.
   *
   * `inFlight`: other calls of the connection that have not ended. Each counts as a completed call for this result,
   * because a busy server reads cancellations before it completes the calls beside them.
   */
  cancelled(inFlight = 0): boolean {
    this.#refill()
    this.#remaining -= 1
    return this.#remaining + Math.min(maxInFlight, inFlight * perCompletedCall) >= 0
  }

  #refill(): void {
    const [now, stood] = [this.#now(), this.#stoodStill()]
    const still = stood - this.#stoodBefore
    const reading = Math.max(0, now - this.#refilledAt - still)
    this.#refilledAt = now
    this.#stoodBefore = stood
    if (this.#remaining < burst) this.#remaining = Math.min(burst, this.#remaining + (reading / 1000) * perSecond)
    if (still > 0) {
      this.#remaining = Math.min(burst + maxAfterStandstill, this.#remaining + (still / 1000) * perSecond)
    }
  }
}
