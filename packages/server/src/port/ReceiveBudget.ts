/**
 * Memory budget for incomplete requests, in bytes. Without it, many unfinished requests, each within its limit, would
 * fill the memory. Readers take bytes before they keep them, and give back everything once the request is complete,
 * refused or cancelled. Timeouts are up to the readers.
 */
export class ReceiveBudget {
  readonly #limit: number
  #used = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  /** Takes bytes from the budget. Returns an error message, and takes nothing, if the limit would be exceeded. */
  take(bytes: number): string | undefined {
    if (this.#used + bytes > this.#limit) {
      return `requests that have not arrived completely hold ${this.#used} bytes on this server, at most ${this.#limit}`
    }
    this.#used += bytes
    return undefined
  }

  /**
   * Takes bytes ahead of their arrival, from the first half of the budget only. Clients that announce much and send
   * little thus do not block others. Returns false, and takes nothing, if the limit would be exceeded.
   */
  reserve(bytes: number): boolean {
    if (this.#used + bytes > this.#limit / 2) return false
    this.#used += bytes
    return true
  }

  give(bytes: number): void {
    this.#used -= bytes
  }
}
