/** Cancellations of one connection that a server reads after a standstill. */
import { constVoid } from "effect/Function"
import { expect, test } from "vitest"
import * as LimitReports from "../limit/LimitReports.ts"
import { MemoryBudget } from "../limit/MemoryBudget.ts"
import { Standstill } from "../limit/Standstill.ts"
import type { Http2Session } from "./Http2Session.ts"
import { SendTimeout } from "./SendTimeout.ts"
import { SessionCalls } from "./SessionCalls.ts"

/** A connection without a socket. */
class LonelySession implements Http2Session {
  readonly remoteAddress = "127.0.0.1"
  readonly bytesRead = 0
  readonly bytesWritten = 0
  isClosing = false
  readonly isDestroyed = false
  reason = ""
  readonly #onClose: Array<() => void> = []
  ping(): void {}
  onSettings(): void {}
  onPing(): void {}
  onClose(run: () => void): void {
    this.#onClose.push(run)
  }
  offClose(): void {}
  closeGracefully(): void {}
  closeWithin(reason: string): void {
    this.isClosing = true
    this.reason = reason
  }
  closeAtOnce(): void {}
  destroy(): void {
    for (const run of this.#onClose) run()
  }
}

/** Cancels calls at once, after the loop stood still for so many seconds. Returns why the connection ends. */
const cancelAfter = (seconds: number, timeout: string | undefined, calls: number): string => {
  const clock = { now: 0 }
  const standstill = new Standstill(() => clock.now)
  const session = new LonelySession()
  const reports = LimitReports.throttled(constVoid, constVoid)
  const limits = { reports, memory: new MemoryBudget(1e9), sendTimeout: new SendTimeout(60_000), standstill }
  const sessionCalls = new SessionCalls(session, session, limits)
  clock.now = 500 + seconds * 1000
  for (let call = 0; call < calls; call++) {
    sessionCalls.begin()
    sessionCalls.ended(true, SessionCalls.ownDeadline(timeout))
  }
  session.destroy()
  return session.reason
}

test.each([
  [12, "10S", 50_000, ""],
  [12, "30S", 50_000, "too_many_resets"],
  [0, "10S", 50_000, "too_many_resets"],
  [12, undefined, 16_000, ""],
  [12, undefined, 20_000, "too_many_resets"],
])("after %d s, %s calls of which %d are cancelled at once: %s", (seconds, timeout, calls, reason) => {
  expect(cancelAfter(seconds, timeout, calls)).toBe(reason)
})
