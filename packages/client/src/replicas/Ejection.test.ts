import { expect, it } from "vitest"
import { Ejection } from "./Ejection.ts"

const settings = { failures: 3, time: 1_000, maxTime: 4_000, returnTime: 1_000 }

/** Without the random part of the times. */
const make = (changes: Partial<typeof settings> = {}) => new Ejection({ ...settings, ...changes }, () => 0.5)

it("ejects after failures in a row", () => {
  const ejection = make()
  expect([ejection.failed("failed", 0), ejection.failed("failed", 1)]).toEqual([false, false])
  ejection.succeeded(2)
  expect([ejection.failed("failed", 3), ejection.failed("failed", 4), ejection.share(4)]).toEqual([false, false, 1])
  expect([ejection.failed("failed", 5), ejection.share(5), ejection.share(1_004)]).toEqual([true, 0, 0])
})

it("one failure is enough if the replica cannot be reached", () => {
  const ejection = make()
  expect([ejection.failed("unreachable", 0), ejection.share(0)]).toEqual([true, 0])
})

it("returns with a growing share", () => {
  const ejection = make()
  ejection.failed("unreachable", 0)
  expect([999, 1_000, 1_250, 1_500, 2_000].map((now) => ejection.share(now))).toEqual([0, 0.05, 0.25, 0.5, 1])
})

it("a failure while it returns ejects it for twice as long, up to the maximum", () => {
  const ejection = make()
  const lengths: Array<number> = []
  let now = 0
  for (let round = 0; round < 5; round++) {
    expect(ejection.failed(round === 0 ? "unreachable" : "failed", now)).toBe(true)
    const start = now
    while (ejection.share(now) === 0) now += 100
    lengths.push(now - start)
  }
  expect(lengths).toEqual([1_000, 2_000, 4_000, 4_000, 4_000])
})

it("failures of calls from before the ejection do not lengthen it", () => {
  const ejection = make()
  ejection.failed("unreachable", 0)
  for (let call = 0; call < 100; call++) expect(ejection.failed("unreachable", 500)).toBe(false)
  expect(ejection.share(1_500)).toBe(0.5)
})

it("a success after its return forgets the ejections so far", () => {
  const ejection = make()
  ejection.failed("unreachable", 0)
  ejection.succeeded(1_500)
  expect(ejection.share(1_500)).toBe(0.5)
  ejection.succeeded(2_000)
  ejection.failed("unreachable", 3_000)
  expect([ejection.share(3_999), ejection.share(4_000)]).toEqual([0, 0.05])
})

it("returns at once without a return time", () => {
  const ejection = make({ returnTime: 0 })
  ejection.failed("unreachable", 0)
  expect([ejection.share(999), ejection.share(1_000)]).toEqual([0, 1])
})

it("the times of several clients differ by up to 20 %", () => {
  const ends = [0, 0.999].map((random) => {
    const ejection = new Ejection(settings, () => random)
    ejection.failed("unreachable", 0)
    let now = 0
    while (ejection.share(now) === 0) now += 1
    return now
  })
  expect(ends).toEqual([800, 1_200])
})
