/**
 * The alarm of a queue with timeouts: the queue expires requests, or idle sequences, also while no instance takes
 * batches. After that, the rest may be a batch.
 */
import type { Alarm } from "./Alarm.ts"
import type { AlarmClock } from "./AlarmClock.ts"
import type { TimedQueue } from "./Queue.ts"

export class QueueTimeouts {
  readonly #queue: TimedQueue
  readonly #nanos: () => number
  readonly #alarm: Alarm
  #ringsAt = Infinity

  /** `nanos` is the time that the queue counts in. `onExpired` is called after requests have expired. */
  constructor(queue: TimedQueue, alarms: AlarmClock, nanos: () => number, onExpired: () => void) {
    this.#queue = queue
    this.#nanos = nanos
    this.#alarm = alarms.alarm(() => {
      this.#ringsAt = Infinity
      queue.expire(nanos())
      this.changed()
      onExpired()
    })
  }

  /** Called after the queue has changed. */
  changed(): void {
    const at = this.#queue.expiresAt
    if (at >= this.#ringsAt) return
    this.#ringsAt = at
    this.#alarm.set(Math.max(0, Math.ceil((at - this.#nanos()) / 1e6)))
  }
}
