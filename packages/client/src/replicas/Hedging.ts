/** Decides when a call is sent to a second replica although the first has not failed. */
import { LatencyWindow } from "./LatencyWindow.ts"

/** After a time in milliseconds, or at a percentile of the last response times, from 0 to 100. */
export type HedgeSettings =
  | { readonly after: number; readonly percentile?: never }
  | { readonly percentile: number; readonly after?: never }

/** Time between two computations of the percentile, in milliseconds. */
const refreshInterval = 100

export class Hedging {
  readonly #settings: HedgeSettings
  readonly #window = new LatencyWindow()
  #delay: number | undefined
  #refreshedAt = -Infinity

  constructor(settings: HedgeSettings) {
    this.#settings = settings
  }

  /** Records the response time of a successful attempt. */
  record(millis: number, now: number): void {
    if (this.#settings.percentile !== undefined) this.#window.record(millis, now)
  }

  /** Returns the time from an attempt to the next, in milliseconds; undefined while too little is known. */
  delay(now: number): number | undefined {
    const { after, percentile } = this.#settings
    if (percentile === undefined) return after
    if (now - this.#refreshedAt >= refreshInterval) {
      this.#refreshedAt = now
      this.#delay = this.#window.percentile(percentile, now)
    }
    return this.#delay
  }
}
