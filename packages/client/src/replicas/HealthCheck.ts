/**
 * Asks one replica again and again whether it takes requests. A replica that says no, or nothing, receives no calls
 * until it says yes. A server that does not offer the check counts as healthy.
 */
import { constVoid } from "effect/Function"
import type { Cancel } from "@nereid/core/internal/request/Request"
import type { ServerChannel, Readiness } from "../channel/Channel.ts"
import type { Timers } from "./Timers.ts"

export interface HealthSettings {
  /** Time from one check to the next, in milliseconds. */
  readonly interval: number
  /** Time in which a replica must respond, in milliseconds. */
  readonly timeout: number
}

/** Starts the checks. The result ends them. */
export const watch = (
  channel: Pick<ServerChannel, "ready">,
  { interval, timeout }: HealthSettings,
  timers: Timers,
  onChange: (isHealthy: boolean) => void,
): Cancel => {
  let wasHealthy = true
  let isOver = false
  let cancel: Cancel = constVoid
  const check = () => {
    let isOpen = true
    const settle = (readiness: Readiness) => {
      if (!isOpen || isOver) return
      isOpen = false
      cancelTimeout()
      const isHealthy = readiness === "ready" || readiness === "unknown"
      // Clients that started together do not ask together.
      cancel = timers.inBackground(interval * (0.9 + 0.2 * timers.random()), check)
      if (isHealthy === wasHealthy) return
      wasHealthy = isHealthy
      onChange(isHealthy)
    }
    const cancelTimeout = timers.inBackground(timeout, () => {
      cancelRequest()
      settle("unreachable")
    })
    cancel = () => {
      cancelTimeout()
      cancelRequest()
    }
    let cancelRequest: Cancel = constVoid
    cancelRequest = channel.ready(timeout, settle)
  }
  check()
  return () => {
    isOver = true
    cancel()
  }
}
