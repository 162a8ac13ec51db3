/** The alarm of a queue whose entries have times of their own, for when no instance asks it. What then is the queue's. */
import type { Alarm } from "./Alarm.ts"
import type { AlarmClock } from "./AlarmClock.ts"
import type { PolicyQueue } from "./PolicyQueue.ts"

export class QueueTimeouts {
  readonly #queue: PolicyQueue
  readonly #nanos: () => number
  readonly #alarm: Alarm
  #ringsAt = Infinity

  /** `nanos` is the time that the queue counts in. */
  constructor(queue: PolicyQueue, alarms: AlarmClock, nanos: () => number) {
    this.#queue = queue
    this.#nanos = nanos
    this.#alarm = alarms.alarm(() => {
      this.#ringsAt = Infinity
      queue.expire(nanos())
      this.added()
    })
  }

  /** The queue has another entry. */
  added(): void {
    const at = this.#queue.expiresAt
    if (at >= this.#ringsAt) return
    this.#ringsAt = at
    this.#alarm.set(Math.max(0, Math.ceil((at - this.#nanos()) / 1e6)))
  }
}
