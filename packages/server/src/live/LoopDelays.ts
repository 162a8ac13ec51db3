/**
 * Delays of the event loop, from a timer that is due every 20 ms. Node's monitorEventLoopDelay does not record the
 * first delay after a reset, so a histogram that is reset every second would miss some.
 */

/** Time between two probes, in milliseconds. */
const period = 20

export class LoopDelays {
  readonly #timer = setInterval(() => this.#probe(), period).unref()
  #delays: Array<number> = []
  #probedAt = performance.now()

  /** Returns the delays since the last call, in milliseconds, and begins anew. */
  take(): { readonly max: number; readonly p99: number } {
    // The timer may be late just now.
    this.#probe()
    const delays = this.#delays.toSorted((one, other) => one - other)
    this.#delays = []
    return { max: delays.at(-1) ?? 0, p99: delays[Math.ceil(delays.length * 0.99) - 1] ?? 0 }
  }

  close(): void {
    clearInterval(this.#timer)
  }

  #probe(): void {
    const now = performance.now()
    this.#delays.push(Math.max(0, now - this.#probedAt - period))
    this.#probedAt = now
  }
}
