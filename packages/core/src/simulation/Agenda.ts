/**
 * Future events on a virtual clock: time advances only from one event to the next. Plain calls; VirtualTime.ts builds
 * Effect's clock and scheduler on it.
 */
import type { Cancel } from "../request/Request.ts"

interface Event {
  readonly time: number
  /** Events of one time happen in the order in which they were noted. */
  readonly order: number
  happen: (() => void) | undefined
}

export class Agenda {
  /** Nanoseconds since the beginning. */
  now = 0
  /** A binary heap: nothing is before its parent. */
  readonly #events: Array<Event> = []
  #soon: Array<() => void> = []
  #count = 0

  /** Schedules a task at the current time, after the pending ones and before later events. */
  soon(happen: () => void): Cancel {
    const task = { happen }
    this.#soon.push(() => task.happen())
    return () => {
      task.happen = () => {}
    }
  }

  /** Schedules an event after this number of nanoseconds, at least 0. */
  after(nanos: number, happen: () => void): Cancel {
    const event: Event = { time: this.now + Math.max(0, nanos), order: this.#count++, happen }
    this.#push(event)
    return () => {
      event.happen = undefined
    }
  }

  /** Runs all events up to this time, inclusive, and the events that they add. Then sets the clock to this time. */
  runUntil(time: number): void {
    if (time > this.now) this.#settle()
    for (let next = this.#events[0]; next !== undefined && next.time <= time; next = this.#events[0]) {
      this.#shift()
      if (next.happen === undefined) continue
      this.now = next.time
      next.happen()
      if (this.#events[0]?.time !== this.now) this.#settle()
    }
    this.now = Math.max(this.now, time)
  }

  /** Until nothing is left to happen. */
  run(): void {
    do {
      this.#settle()
      for (let last = this.#events[0]; last !== undefined; last = this.#events[0]) this.runUntil(last.time)
    } while (this.#soon.length > 0)
  }

  #settle() {
    while (this.#soon.length > 0) {
      const tasks = this.#soon
      this.#soon = []
      for (const task of tasks) task()
    }
  }

  #push(event: Event) {
    const events = this.#events
    let index = events.length
    while (index > 0) {
      const parent = (index - 1) >> 1
      const above = events[parent]
      if (above === undefined || isBefore(above, event)) break
      events[index] = above
      index = parent
    }
    events[index] = event
  }

  #shift() {
    const events = this.#events
    const last = events.pop()
    if (last === undefined || events.length === 0) return
    let index = 0
    for (;;) {
      const left = 2 * index + 1
      const [a, b] = [events[left], events[left + 1]]
      const child = b !== undefined && a !== undefined && isBefore(b, a) ? left + 1 : left
      const below = events[child]
      if (below === undefined || isBefore(last, below)) break
      events[index] = below
      index = child
    }
    events[index] = last
  }
}

const isBefore = (a: Event, b: Event): boolean => a.time < b.time || (a.time === b.time && a.order < b.order)
