/** Room in a ring, compared with a list of the bodies that are in it. */
import * as fc from "fast-check"
import { expect, it } from "vitest"
import { SharedRing } from "./SharedRing.ts"

it("bodies overlap no other one, and lie inside, in any order of coming and going", () => {
  const step = fc.oneof(fc.integer({ min: 1, max: 5000 }), fc.constant("release" as const))
  fc.assert(
    fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
      const capacity = 16_384
      const ring = new SharedRing(capacity)
      const bodies: Array<{ start: number; end: number }> = []
      for (const step of steps) {
        if (step === "release") {
          if (bodies.shift() !== undefined) ring.release(1)
          continue
        }
        const start = ring.take(step)
        if (start === undefined) continue
        const end = start + step
        expect(start % 64).toBe(0)
        expect(end).toBeLessThanOrEqual(capacity)
        for (const other of bodies) expect(end <= other.start || other.end <= start).toBe(true)
        bodies.push({ start, end })
      }
      expect(ring.size).toBe(bodies.length)
      ring.release(bodies.length)
      expect(ring.take(capacity)).toBe(0)
    }),
  )
})

it("a full ring has no room until its oldest body leaves", () => {
  const ring = new SharedRing(4096)
  expect([ring.take(2048), ring.take(2048), ring.take(64)]).toEqual([0, 2048, undefined])
  ring.release(1)
  expect(ring.take(4096)).toBeUndefined()
  expect(ring.take(2048)).toBe(0)
  ring.release(2)
  expect(ring.take(4096)).toBe(0)
})

it("a body that leaves one turn late makes the ring use three places, not all", () => {
  const ring = new SharedRing(2 ** 20)
  const starts = new Set<number | undefined>()
  for (let turn = 0; turn < 100; turn++) {
    starts.add(ring.take(1024))
    if (turn > 0) ring.release(1)
  }
  expect(starts).toEqual(new Set([0, 1024, 2048]))
})
