/**
 * The slowest requests of the last minutes, without contents of tensors. A request that is faster than all of them
 * costs one comparison with the threshold.
 */
import type { ComputeDurations, FailureReason } from "@nereid/core/internal/metrics/ModelStatistics"
import { maxSlowRequests, slowRequestAge, type SlowRequest } from "@nereid/dashboard/internal/live/SlowRequest"

/** A request that has ended. Durations are in nanoseconds; `id` is the caller's. */
interface Ended {
  readonly name: string
  readonly version: string
  readonly id: string
  readonly total: number
}

const maxIdLength = 200

export class SlowRequests {
  /** Nanoseconds above which a request is kept. A refusal, which takes no time, is never kept. */
  threshold = 0
  readonly #requests: Array<SlowRequest> = []
  readonly #now: () => number
  /** Index of the fastest request. */
  #fastest = 0
  #isChanged = false

  /** `now` is in milliseconds since the epoch. */
  constructor(now: () => number = Date.now) {
    this.#now = now
  }

  succeeded({
    queued,
    compute: { input, infer, output, batch = 0 },
    ...ended
  }: Ended & { readonly queued: number; readonly compute: ComputeDurations }): void {
    const parts = [millis(queued), millis(input), millis(infer), millis(output)] as const
    this.#add(ended, { outcome: "success", batch, parts })
  }

  failed({ reason, ...ended }: Ended & { readonly reason: FailureReason }): void {
    this.#add(ended, { outcome: reason, batch: 0 })
  }

  /** Forgets old requests. Returns whether the requests have changed since the last call. */
  review(): boolean {
    const oldest = this.#now() - slowRequestAge
    const kept = this.#requests.filter(({ time }) => time >= oldest)
    if (kept.length < this.#requests.length) {
      this.#requests.splice(0, Infinity, ...kept)
      this.#isChanged = true
      this.#updateThreshold()
    }
    const isChanged = this.#isChanged
    this.#isChanged = false
    return isChanged
  }

  /** The slowest first. */
  all(): ReadonlyArray<SlowRequest> {
    return this.#requests.toSorted((one, other) => other.millis - one.millis)
  }

  #add({ name, version, id, total }: Ended, rest: Pick<SlowRequest, "outcome" | "batch" | "parts">): void {
    const kept = id.length > maxIdLength ? id.slice(0, maxIdLength) : id
    const request = { name, version, id: kept, time: this.#now(), millis: millis(total), ...rest }
    if (this.#requests.length < maxSlowRequests) this.#requests.push(request)
    else this.#requests[this.#fastest] = request
    this.#isChanged = true
    this.#updateThreshold()
  }

  #updateThreshold(): void {
    this.threshold = 0
    if (this.#requests.length < maxSlowRequests) return
    let fastest = Infinity
    for (const [index, { millis }] of this.#requests.entries()) {
      if (millis >= fastest) continue
      fastest = millis
      this.#fastest = index
    }
    this.threshold = fastest * 1e6
  }
}

const millis = (nanos: number): number => Math.max(0, Math.round(nanos / 1000) / 1000)
