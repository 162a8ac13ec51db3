/**
 * The bytes that requests may hold together until they have arrived completely: many of them, each within its own limit
 * and never finished, would otherwise fill the memory. Whoever collects one takes before it keeps and gives back
 * everything once the request is whole, refused or gone. It counts only; how long a request may take is the collector's.
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
   * Takes them for memory that is ahead of what has come: of the first half only, so that who announces much and sends
   * little keeps nobody out. False, and nothing is taken, where there is no room.
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
