import { expect, it, onTestFinished, vi } from "vitest"
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

it("a new call replaces a pending one", async () => {
  const clock = begin()
  const called: Array<string> = []
  clock.wake(clock.now() + 0.01, () => called.push("soon"))
  clock.wake(clock.now() + 10, () => called.push("later"))
  await new Promise<void>((resolve) => clock.wake(clock.now() + 1, resolve))
  await new Promise<void>((resolve) => clock.wake(clock.now() + 15, resolve))
  expect(called).toEqual([])
})

it("calls after a sleep that ended between the two reads of its count", async () => {
  const spy = vi.spyOn(Atomics, "waitAsync").mockReturnValueOnce({ async: false, value: "not-equal" })
  onTestFinished(() => spy.mockRestore())
  const clock = begin()
  for (let call = 0; call < 3; call++) await new Promise<void>((resolve) => clock.wake(clock.now() + 2, resolve))
})
