import { expect, test } from "vitest"
import { Standstill } from "./Standstill.ts"

const make = () => {
  const clock = { now: 1_000 }
  const standstill = new Standstill(() => clock.now)
  standstill.tick()
  const seen = (now: number) => {
    clock.now = now
    return [standstill.total, standstill.recent]
  }
  const tick = (now: number) => {
    clock.now = now
    standstill.tick()
  }
  return { seen, tick }
}

test("a loop that ticks in time does not stand still", () => {
  const { seen, tick } = make()
  for (let now = 1_500; now <= 10_000; now += 500) tick(now)
  expect(seen(10_400)).toEqual([0, 0])
})

test("a standstill is known to the reads before the late tick, and stays known for as long as it took", () => {
  const { seen, tick } = make()
  expect(seen(5_500)).toEqual([4_000, 4_000])
  expect(seen(5_600)).toEqual([4_100, 4_100])
  tick(5_600)
  expect(seen(5_700)).toEqual([4_100, 4_100])
  for (let now = 6_100; now <= 9_600; now += 500) tick(now)
  expect(seen(9_600)).toEqual([4_100, 4_100])
  expect(seen(9_701)).toEqual([4_100, 0])
})

test("standstills add up", () => {
  const { seen, tick } = make()
  tick(3_500)
  tick(7_000)
  expect(seen(7_000)).toEqual([5_000, 3_000])
})

test("an unwatched loop does not stand still", () => {
  let now = 0
  const standstill = new Standstill(() => now)
  standstill.watch()
  standstill.watch()
  standstill.unwatch()
  now = 1_500
  standstill.unwatch()
  now = 60_000
  expect(standstill.total).toBe(1_000)
  standstill.watch()
  now = 60_400
  expect(standstill.total).toBe(1_000)
  standstill.unwatch()
})
