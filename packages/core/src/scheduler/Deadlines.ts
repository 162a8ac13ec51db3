/**
 * Pending requests with a deadline, and one alarm for the earliest of them. The owner decides what happens to an
 * expired one.
 */
import type { Clock } from "effect"
import type { Request } from "../request/Request.ts"
import type { Alarm } from "./Alarm.ts"
import type { AlarmClock } from "./AlarmClock.ts"
import { Expiries, type Expiry } from "./Expiries.ts"
import * as MonotonicTime from "../request/MonotonicTime.ts"

/** A pending request. */
export interface PendingRequest<T> {
  readonly request: Request
  /** Its place among the deadlines; undefined without one. */
  deadline?: Expiry<T> | undefined
}

export class Deadlines<T extends PendingRequest<T>> {
  readonly #clock: Clock.Clock
  readonly #alarm: Alarm
  readonly #expire: (entry: T) => void
  readonly #expiries = new Expiries<T>()

  /** `expire` takes those whose deadline has passed, each once. */
  constructor(alarms: AlarmClock, expire: (entry: T) => void) {
    this.#clock = alarms.clock
    this.#alarm = alarms.alarm(() => this.#ring())
    this.#expire = expire
  }

  /** Has no effect for a request without a deadline. */
  add(entry: T): void {
    const { deadline } = entry.request
    if (deadline === undefined) return
    const isEarliest = deadline < this.#expiries.earliest
    entry.deadline = this.#expiries.add(entry, deadline)
    if (isEarliest) this.#alarm.set(deadline - MonotonicTime.millis(this.#clock))
  }

  delete(entry: T): void {
    if (entry.deadline === undefined) return
    this.#expiries.delete(entry.deadline)
    entry.deadline = undefined
  }

  #ring(): void {
    const now = MonotonicTime.millis(this.#clock)
    for (const entry of this.#expiries.take(now)) this.#expire(entry)
    if (this.#expiries.earliest !== Infinity) this.#alarm.set(this.#expiries.earliest - now)
  }
}
