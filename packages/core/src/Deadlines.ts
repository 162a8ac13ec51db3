/** Whose deadlines are to come, and one alarm for the earliest of them. What becomes of an entry then is Scheduler.ts's. */
import { Clock, Effect } from "effect"
import * as Alarm from "./Alarm.ts"
import type { Entry } from "./Entry.ts"

export interface Deadlines {
  /** Harmless where it has none. */
  readonly add: (entry: Entry) => void
  readonly delete: (entry: Entry) => void
}

/** `expire` takes those whose deadline has passed, each once. */
export const make = Effect.fnUntraced(function* (expire: (entry: Entry) => void) {
  const clock = yield* Clock.Clock
  const entries = new Set<Entry>()
  let earliest = Infinity

  const ring = () => {
    const now = clock.currentTimeMillisUnsafe()
    earliest = Infinity
    for (const entry of entries) {
      const { deadline = Infinity } = entry.request
      if (deadline > now) {
        if (deadline < earliest) earliest = deadline
      } else {
        entries.delete(entry)
        expire(entry)
      }
    }
    if (earliest !== Infinity) alarm.set(earliest - now)
  }
  const alarm = yield* Alarm.make(ring)

  const deadlines: Deadlines = {
    add: (entry) => {
      const { deadline } = entry.request
      if (deadline === undefined) return
      entries.add(entry)
      if (deadline >= earliest) return
      earliest = deadline
      alarm.set(deadline - clock.currentTimeMillisUnsafe())
    },
    delete: (entry) => {
      if (entry.request.deadline !== undefined) entries.delete(entry)
    },
  }
  return deadlines
})
