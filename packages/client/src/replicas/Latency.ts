/** Moving average of the response times of one replica. Recent responses count more, whatever their number. */

/** Time after which a response counts a third, in milliseconds. */
const memory = 2_000

/** Time after which a replica without responses counts a third less slow, in milliseconds. */
const forgiveness = 5_000

/** Below this multiple of the usual time, a difference is noise. */
const tolerance = 2

export class Latency {
  #average = 0
  #count = 0
  #at = 0

  /** Average in milliseconds; undefined before the first response. */
  get average(): number | undefined {
    return this.#count === 0 ? undefined : this.#average
  }

  record(millis: number, now: number): void {
    this.#count += 1
    const share = Math.max(1 / this.#count, 1 - Math.exp((this.#at - now) / memory))
    this.#average += (millis - this.#average) * share
    this.#at = now
  }

  /** Records a call that was given up: it would have taken at least this time. */
  recordAtLeast(millis: number, now: number): void {
    if (millis > this.#average) this.record(millis, now)
  }

  /**
   * Returns how many times slower than usual the replica is; 1 if the difference is noise. A replica that receives no
   * calls for its slowness becomes faster by and by, so that it is tried again.
   */
  slowness(usual: number, now: number): number {
    if (this.#count === 0 || usual <= 0) return 1
    const excess = (this.#average - usual) * Math.exp((this.#at - now) / forgiveness)
    const ratio = 1 + excess / usual
    return ratio < tolerance ? 1 : ratio
  }
}
