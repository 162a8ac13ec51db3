/**
 * The alarm of a queue with queue timeouts: the queue expires the requests, also while no instance takes batches. After
 * that, the rest may be a batch.
 */
import type { Alarm } from "./Alarm.ts"
import type { AlarmClock } from "./AlarmClock.ts"
import type { PolicyQueue } from "./PolicyQueue.ts"

export class QueueTimeouts {
  readonly #queue: PolicyQueue
  readonly #nanos: () => number
  readonly #alarm: Alarm
  #ringsAt = Infinity

  /** `nanos` is the time that the queue counts in. `onExpired` is called after requests have expired. */
  constructor(queue: PolicyQueue, alarms: AlarmClock, nanos: () => number, onExpired: () => void) {
    this.#queue = queue
    this.#nanos = nanos
    this.#alarm = alarms.alarm(() => {
      this.#ringsAt = Infinity
      queue.expire(nanos())
      this.added()
      onExpired()
    })
  }

  /** Called after a request was queued. */
  added(): void {
    const at = this.#queue.expiresAt
    if (at >= this.#ringsAt) return
    this.#ringsAt = at
    this.#alarm.set(Math.max(0, Math.ceil((at - this.#nanos()) / 1e6)))
  }
}
