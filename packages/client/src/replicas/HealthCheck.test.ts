import { expect, it } from "vitest"
import type { Readiness } from "../channel/Channel.ts"
import * as HealthCheck from "./HealthCheck.ts"
import { ScriptedChannel } from "./ScriptedChannel.fixture.ts"
import { VirtualTimers } from "./VirtualTimers.fixture.ts"

const start = () => {
  const timers = new VirtualTimers()
  const channel = new ScriptedChannel()
  const changes: Array<boolean> = []
  const stop = HealthCheck.watch(channel, { interval: 1_000, timeout: 500 }, timers, (is) => changes.push(is))
  const answer = (readiness: Readiness) => channel.checks.at(-1)?.(readiness)
  return { timers, channel, changes, stop, answer }
}

it("reports only changes", () => {
  const { timers, channel, changes, answer } = start()
  for (const readiness of ["ready", "ready", "notReady", "unreachable", "ready", "unknown"] as const) {
    answer(readiness)
    timers.advance(1_200)
    // The next check has timed out if it was not answered; it is answered below.
    expect(channel.checks.length).toBeGreaterThan(1)
  }
  expect(changes).toEqual([false, true])
})

it("a replica that does not respond in time is unhealthy, until it responds to a later check", () => {
  const { timers, channel, changes, answer } = start()
  timers.advance(499)
  expect(changes).toEqual([])
  timers.advance(1)
  expect(changes).toEqual([false])
  // Too late.
  answer("ready")
  expect(changes).toEqual([false])
  timers.advance(1_200)
  expect(channel.checks.length).toBe(2)
  answer("ready")
  expect(changes).toEqual([false, true])
})

it("a server that does not offer the check is healthy", () => {
  const { changes, answer } = start()
  answer("unknown")
  expect(changes).toEqual([])
})

it("a stopped check leaves nothing behind", () => {
  const { timers, channel, changes, stop, answer } = start()
  stop()
  answer("notReady")
  timers.advance(100_000)
  expect([channel.checks.length, changes, timers.size]).toEqual([1, [], 0])
})
