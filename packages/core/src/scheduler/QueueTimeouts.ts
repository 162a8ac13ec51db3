/** The alarm of a queue whose entries have times of their own, for when no instance asks it. What then is the queue's. */
import { Effect } from "effect"
import * as Alarm from "./Alarm.ts"
import type { PolicyQueue } from "./PolicyQueue.ts"

export interface QueueTimeouts {
  /** The queue has another entry. */
  readonly added: () => void
}

/** `nanos` is the time that the queue counts in. */
export const make = Effect.fnUntraced(function* (queue: PolicyQueue, nanos: () => number) {
  let ringsAt = Infinity
  const added = () => {
    const at = queue.expiresAt
    if (at >= ringsAt) return
    ringsAt = at
    alarm.set(Math.max(0, Math.ceil((at - nanos()) / 1e6)))
  }
  const alarm = yield* Alarm.make(() => {
    ringsAt = Infinity
    queue.expire(nanos())
    added()
  })
  const timeouts: QueueTimeouts = { added }
  return timeouts
})
