import { expect, it, onTestFinished } from "vitest"
import * as Metronome from "./Metronome.ts"

const begin = () => {
  const clock = Metronome.start()
  onTestFinished(() => clock.close())
  return clock
}

it("calls when the time has come, and not before", async () => {
  const clock = begin()
  for (const wait of [3, 0.2, 0, -1, 0.05, 1.5]) {
    const at = clock.now() + wait
    await new Promise<void>((resolve) => clock.wake(at, resolve))
    expect(clock.now()).toBeGreaterThanOrEqual(at)
  }
})

it("a call that was asked for before is forgotten", async () => {
  const clock = begin()
  const called: Array<string> = []
  clock.wake(clock.now() + 0.01, () => called.push("soon"))
  clock.wake(clock.now() + 10, () => called.push("later"))
  await new Promise<void>((resolve) => clock.wake(clock.now() + 1, resolve))
  await new Promise<void>((resolve) => clock.wake(clock.now() + 15, resolve))
  expect(called).toEqual([])
})
