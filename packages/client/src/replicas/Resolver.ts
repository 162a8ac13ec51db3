/**
 * Looks up the addresses of a name again and again. A lookup that fails keeps the addresses so far, and is repeated
 * sooner. Lookups do not overlap, since those of the operating system cannot be cancelled.
 */
import { constVoid } from "effect/Function"
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"
import type { Cancel } from "@nereid/core/internal/request/Request"
import type { Timers } from "./Timers.ts"

/** Returns the IP addresses of a host. */
export type Lookup = (host: string) => Promise<ReadonlyArray<string>>

/** Shortest time between two lookups, in milliseconds. */
const minInterval = 1_000

/** Addresses of one name that are used. */
const maxAddresses = 1_000

interface ResolverOptions {
  readonly host: string
  readonly lookup: Lookup
  /** Time from one lookup to the next, in milliseconds; at least a second. */
  readonly interval: number
  /** Time after which a lookup counts as failed, in milliseconds. Its result is used when it comes. */
  readonly timeout: number
  readonly timers: Timers
  /** Takes the addresses of a lookup that succeeded, in order and at least one. */
  readonly onAddresses: (ips: ReadonlyArray<string>) => void
  /** Takes the reason why a lookup failed. */
  readonly onFailure: (reason: string) => void
}

export class Resolver {
  readonly #options: ResolverOptions
  #isLookingUp = false
  #isClosed = false
  #cancelNext: Cancel = constVoid
  #endedAt = -Infinity
  /** Lookups in a row that failed. */
  #failures = 0

  constructor(options: ResolverOptions) {
    this.#options = options
  }

  /** Looks up now, or a second after the last lookup, instead of at the next interval. */
  hurry(): void {
    if (this.#isLookingUp || this.#isClosed) return
    const { timers } = this.#options
    const pause = this.#endedAt + minInterval - timers.now()
    if (pause <= 0) return void this.#lookUp()
    this.#schedule(pause)
  }

  close(): void {
    this.#isClosed = true
    this.#cancelNext()
  }

  #schedule(millis: number): void {
    this.#cancelNext()
    this.#cancelNext = this.#options.timers.inBackground(millis, () => void this.#lookUp())
  }

  async #lookUp(): Promise<void> {
    const { host, lookup, interval, timeout, timers, onAddresses, onFailure } = this.#options
    this.#cancelNext()
    this.#isLookingUp = true
    const cancelTimeout = timers.inBackground(timeout, () => onFailure(`no result within ${timeout} ms`))
    const found = await lookup(host).then(
      (ips) => (ips.length === 0 ? `${host} has no address` : [...new Set(ips)].toSorted().slice(0, maxAddresses)),
      (error: unknown) => errorMessage(error),
    )
    cancelTimeout()
    this.#isLookingUp = false
    this.#endedAt = timers.now()
    if (this.#isClosed) return
    const isFailure = typeof found === "string"
    this.#failures = isFailure ? this.#failures + 1 : 0
    this.#schedule(isFailure ? Math.min(interval, minInterval * 2 ** Math.min(this.#failures, 20)) : interval)
    if (isFailure) onFailure(found)
    else onAddresses(found)
  }
}
