/**
 * Takes a replica out after failures, for a time that grows with each ejection in a row, and returns it by and by. It
 * counts what calls see; HealthCheck.ts asks the replica itself.
 *
 *   in ──failures──► out ──time──► returning: a growing share of calls ──returnTime──► in
 *                     ▲                          │
 *                     └────────any failure───────┘
 */
export interface EjectionSettings {
  /** Failures in a row that eject. */
  readonly failures: number
  /** Time of the first ejection, in milliseconds. Each further one in a row takes twice as long. */
  readonly time: number
  /** In milliseconds. */
  readonly maxTime: number
  /** Time in which the share of calls grows back, in milliseconds. */
  readonly returnTime: number
}

/** `unreachable`: nothing can be sent. `failed`: a call failed for a reason that may be the replica's. */
export type ReplicaFailure = "unreachable" | "failed"

/** Ejections in a row that still lengthen the next: 2^30 seconds exceed every maximum. */
const maxDoublings = 30

/** Smallest share of a replica that returns: it has to be tried. */
const minShare = 0.05

export class Ejection {
  readonly #settings: EjectionSettings
  readonly #random: () => number
  #failures = 0
  #ejections = 0
  /** End of the last ejection; undefined for a replica that is fully in. */
  #outUntil: number | undefined

  constructor(settings: EjectionSettings, random: () => number) {
    this.#settings = settings
    this.#random = random
  }

  /** Counts a failure. Returns whether it ejects the replica. */
  failed(failure: ReplicaFailure, now: number): boolean {
    const until = this.#outUntil
    // Calls from before the ejection say nothing new.
    if (until !== undefined && now < until) return false
    this.#failures += 1
    const returns = this.#isReturning(now)
    if (!returns && failure !== "unreachable" && this.#failures < this.#settings.failures) return false
    const { time, maxTime } = this.#settings
    const full = Math.min(maxTime, time * 2 ** Math.min(this.#ejections, maxDoublings))
    this.#ejections += 1
    this.#failures = 0
    // Clients that saw the same failure return at different times.
    this.#outUntil = now + full * (0.8 + 0.4 * this.#random())
    return true
  }

  succeeded(now: number): void {
    this.#failures = 0
    if (this.#outUntil === undefined || this.share(now) < 1) return
    this.#outUntil = undefined
    this.#ejections = 0
  }

  /** Returns the replica now, as after an ejection: its health check has failed, and succeeds again. */
  returns(now: number): void {
    this.#failures = 0
    this.#outUntil = now
  }

  /** Share of its calls that the replica receives, from 0 for an ejected one to 1. */
  share(now: number): number {
    const until = this.#outUntil
    if (until === undefined) return 1
    if (now < until) return 0
    const { returnTime } = this.#settings
    return returnTime === 0 ? 1 : Math.min(1, Math.max(minShare, (now - until) / returnTime))
  }

  #isReturning(now: number): boolean {
    return this.#outUntil !== undefined && this.share(now) < 1
  }
}
