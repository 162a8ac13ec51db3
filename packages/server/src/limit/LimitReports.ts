/**
 * Reports of limits that acted: a counter for each limit, and at most one line of the log per limit and second. A limit
 * that acts often would otherwise fill the log, and a limit that acts silently looks like a fault of the server.
 */
import { Effect, Metric } from "effect"

/** Limits that protect the server from its callers, as the label `limit` of the metric names them. */
export type Limit =
  | "connections"
  | "connection_greeting"
  | "frames"
  | "held_memory"
  | "late_reading"
  | "receive_time"
  | "send_time"
  | "stream_resets"
  | "pings"

export interface LimitReports {
  /** Counts one action of a limit. `message` says what the limit refused or ended, and why. */
  readonly acted: (limit: Limit, message: string) => void
}

/** Reports nothing, for front ends without a server. */
export const none: LimitReports = { acted: () => {} }

const actions = Metric.counter("nereid_limit_actions_total", {
  description: "Number of times that a limit refused or ended a request or a connection",
  incremental: true,
})

const counterOf = (limit: Limit) => Metric.withAttributes(actions, { limit })

/** Minimum time between two lines about the same limit. */
const intervalMillis = 1_000

/** Logs and counts with the services of the calling effect. */
export const make: Effect.Effect<LimitReports> = Effect.gen(function* () {
  const context = yield* Effect.context<never>()
  const runFork = Effect.runForkWith(context)
  // A metric finds its series by its attributes, which costs more than a refusal.
  const counters = new Map<Limit, ReturnType<typeof counterOf>>()
  return throttled(
    (message) => void runFork(Effect.logWarning(message)),
    (limit) => {
      const counter = counters.get(limit) ?? counterOf(limit)
      counters.set(limit, counter)
      counter.updateUnsafe(1, context)
    },
  )
})

/** Passes each action to `count`, and to `log` one line per limit and interval. */
export const throttled = (log: (message: string) => void, count: (limit: Limit) => void): LimitReports => {
  const suppressed = new Map<Limit, Suppressed>()
  const openWindow = (limit: Limit) => {
    suppressed.set(limit, { count: 0, last: "" })
    setTimeout(() => closeWindow(limit), intervalMillis).unref()
  }
  const closeWindow = (limit: Limit) => {
    const { count: times, last } = suppressed.get(limit) ?? { count: 0, last: "" }
    suppressed.delete(limit)
    if (times === 0) return
    log(times === 1 ? last : `${last} (and ${times - 1} more in the last second)`)
    openWindow(limit)
  }
  return {
    acted: (limit, message) => {
      count(limit)
      const waiting = suppressed.get(limit)
      if (waiting === undefined) {
        log(message)
        openWindow(limit)
      } else {
        waiting.count += 1
        waiting.last = message
      }
    },
  }
}

/** Actions within the current interval that no line reports yet. */
interface Suppressed {
  count: number
  last: string
}
