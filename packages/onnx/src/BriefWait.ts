/**
 * Decides whether the event loop blocks for a moment until the thread of an instance has run a batch. That spares a
 * lone caller a wake-up of the event loop. The run stays in its thread, so the wait has a limit, however long the run
 * is.
 *
 * The loop waits only if the last runs were short, and if it has been idle since the last batch ended. Otherwise more
 * requests may be waiting in the sockets, and the loop should read them during the run.
 */

/** Number of last runs that count. */
const counted = 16

/** Nanoseconds; none of the last runs may be longer. */
const maxRun = 0.5e6

/** Maximum wait, in milliseconds. */
const maxWait = 1

/** Number of batches without a wait after one that was in vain. */
const pause = 64

export class BriefWait {
  /** The last durations in nanoseconds, as a ring. */
  readonly #runs = new Float64Array(counted).fill(Infinity)
  #next = 0
  #idleAtEnd = 0
  #paused = 0

  /**
   * Milliseconds to wait for a batch that starts with no other in flight; 0: not at all. `idle` is the time that the
   * event loop has been idle since its start.
   */
  limit(idle: number): number {
    if (this.#paused > 0) {
      this.#paused -= 1
      return 0
    }
    if (idle <= this.#idleAtEnd) return 0
    const longest = this.#longest
    return longest > maxRun ? 0 : Math.min(maxWait, (4 * longest) / 1e6 + 0.1)
  }

  /** The wait was in vain: the batch is still running. */
  missed(): void {
    this.#paused = pause
  }

  /** A run took this many nanoseconds. */
  ran(nanos: number): void {
    this.#runs[this.#next] = nanos
    this.#next = (this.#next + 1) % counted
  }

  /** The last batch in flight has ended. */
  ended(idle: number): void {
    this.#idleAtEnd = idle
  }

  get #longest(): number {
    let longest = 0
    for (const nanos of this.#runs) if (nanos > longest) longest = nanos
    return longest
  }
}
