/** Limits the time of one execution. Times in which it waits for slow readers of its responses do not count. */
export class ExecuteTimer {
  readonly #onTimeout: () => void
  /** Milliseconds that are left, as of `#startedAt`. */
  #left: number
  #startedAt = 0
  #timer: NodeJS.Timeout | undefined
  /** Readers that the execution waits for. */
  #readers = 0
  #isStopped = false

  /** Starts it. */
  constructor(millis: number, onTimeout: () => void) {
    this.#left = millis
    this.#onTimeout = onTimeout
    this.#start()
  }

  /** The execution waits for a further reader, or for one less. */
  waits(isWaiting: boolean): void {
    if (this.#isStopped) return
    if (isWaiting && this.#readers === 0) {
      clearTimeout(this.#timer)
      this.#left -= performance.now() - this.#startedAt
    }
    this.#readers += isWaiting ? 1 : -1
    if (this.#readers === 0) this.#start()
  }

  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
  }

  #start(): void {
    this.#startedAt = performance.now()
    this.#timer = setTimeout(this.#onTimeout, Math.max(0, this.#left))
  }
}
