/**
 * Limits retries and hedges of a client, as gRPC's retry throttling does (gRFC A6): a failure that may be retried takes
 * a token, and a success returns a part of one. With half of the tokens or fewer, nothing is sent twice. A retry of a
 * request that no server can have seen costs nothing.
 */
export interface RetryBudgetSettings {
  readonly tokens: number
  /** Tokens that a success returns. */
  readonly ratio: number
}

export class RetryBudget {
  readonly #settings: RetryBudgetSettings
  #tokens: number

  constructor(settings: RetryBudgetSettings) {
    this.#settings = settings
    this.#tokens = settings.tokens
  }

  get tokens(): number {
    return this.#tokens
  }

  succeeded(): void {
    const { tokens, ratio } = this.#settings
    this.#tokens = Math.min(tokens, this.#tokens + ratio)
  }

  /** Takes a token for a failure. Returns whether the request may be sent again. */
  failed(): boolean {
    this.#tokens = Math.max(0, this.#tokens - 1)
    return this.#permits
  }

  /** Takes a token for a second request that is sent before the first has ended, if the budget permits it. */
  hedge(): boolean {
    if (!this.#permits) return false
    this.#tokens -= 1
    return true
  }

  get #permits(): boolean {
    return this.#tokens > this.#settings.tokens / 2
  }
}
