/** Whose deadlines are to come, and one alarm for the earliest of them. What becomes of an entry then is its owner's. */
import { Clock, Effect } from "effect"
import * as Alarm from "./Alarm.ts"
import { Expiries } from "./Expiries.ts"
import type { Request } from "../request/Request.ts"

/** Whoever waits for the answer of a request. */
export interface Expiring {
  readonly request: Request
}

export interface Deadlines<T extends Expiring> {
  /** Harmless where it has none. */
  readonly add: (entry: T) => void
  readonly delete: (entry: T) => void
}

/** `expire` takes those whose deadline has passed, each once. */
export const make = Effect.fnUntraced(function* <T extends Expiring>(expire: (entry: T) => void) {
  const clock = yield* Clock.Clock
  const expiries = new Expiries<T>()

  const ring = () => {
    const now = clock.currentTimeMillisUnsafe()
    for (const entry of expiries.take(now)) expire(entry)
    if (expiries.earliest !== Infinity) alarm.set(expiries.earliest - now)
  }
  const alarm = yield* Alarm.make(ring)

  const deadlines: Deadlines<T> = {
    add: (entry) => {
      const { deadline } = entry.request
      if (deadline === undefined) return
      const isEarliest = deadline < expiries.earliest
      expiries.add(entry, deadline)
      if (isEarliest) alarm.set(deadline - clock.currentTimeMillisUnsafe())
    },
    delete: (entry) => {
      if (entry.request.deadline !== undefined) expiries.delete(entry)
    },
  }
  return deadlines
})
