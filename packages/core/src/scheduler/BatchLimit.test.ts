import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { BatchLimit } from "./BatchLimit.ts"

interface Play {
  readonly cost: (rows: number) => number
  readonly batches?: number
  readonly waiting?: number
  /** Time that is left to each request. */
  readonly left?: number
}

/** Executes batches of at most 32 rows while so many wait. Returns the rows in a time of the last half. */
const play = (limit: BatchLimit, { cost, batches = 600, waiting = 64, left = 1e6 }: Play): number => {
  let [rows, time] = [0, 0]
  for (let batch = 0; batch < batches; batch++) {
    limit.arrived(left)
    const taken = Math.min(limit.next(waiting), waiting)
    const duration = cost(taken)
    limit.learn(taken, duration)
    if (batch < batches / 2) continue
    rows += taken
    time += duration
  }
  return rows / time
}

const flat = () => 10
const linear = (rows: number) => 1.5 * rows
const fixed = (rows: number) => 20 + 0.5 * rows
const quadratic = (rows: number) => 1 + 0.05 * rows * rows
const cliff = (rows: number) => (rows <= 8 ? 2 + 0.5 * rows : 8 + 2 * rows)

describe("while more rows wait than a batch takes", () => {
  it.each([
    ["a batch takes all that it may, if that costs nothing", flat, 32],
    ["a batch takes all that it may, if each row costs the same", linear, 32],
    ["a batch takes all that it may, if rows cost little", fixed, 32],
    ["a batch takes fewer, if each row makes the others slower", quadratic, 4],
    ["a batch stays below a size from which rows cost more", cliff, 8],
  ])("%s", (_, cost, expected) => {
    const limit = new BatchLimit(32)
    const rate = play(limit, { cost })
    expect(limit.rows).toBe(expected)
    // Trials of other sizes cost little.
    expect(rate).toBeGreaterThan((0.97 * expected) / cost(expected))
  })

  it("a batch takes at most half of the time of its requests, if that costs little", () => {
    const limit = new BatchLimit(64)
    play(limit, { cost: (rows) => 2 + 1.4 * rows, left: 100, waiting: 64 })
    // Rows of a batch of 32 are faster by 1.4 %, those of one of 64 by 3.5 %.
    expect(limit.rows).toBe(24)
  })

  it("a batch takes more of it, if that is better by far", () => {
    const limit = new BatchLimit(64)
    play(limit, { cost: (rows) => 30 + 2 * rows, left: 100, waiting: 128 })
    expect(limit.rows).toBe(24)
  })
})

it("takes all in a short burst, however slow", () => {
  const limit = new BatchLimit(32)
  play(limit, { cost: quadratic, batches: 15 })
  expect(limit.next(64)).toBe(32)
})

it("tries no size that cannot be faster", () => {
  const limit = new BatchLimit(32)
  for (let batch = 0; batch < 20; batch++) limit.learn(1, fixed(1))
  const sizes = new Set<number>()
  play(limit, {
    batches: 300,
    cost: (rows) => {
      sizes.add(rows)
      return fixed(rows)
    },
  })
  // A batch of 16 takes at least as long as one of 1, which is too long.
  expect([...sizes].toSorted((a, b) => a - b)).toEqual([24, 32])
})

it("forgets what it has learned once the model has become faster", () => {
  const limit = new BatchLimit(32)
  play(limit, { cost: cliff })
  expect(limit.rows).toBe(8)
  play(limit, { cost: flat, batches: 20 })
  play(limit, { cost: () => 1 })
  expect(limit.rows).toBe(32)
})

it("a single pause changes nothing", () => {
  const limit = new BatchLimit(32)
  play(limit, { cost: fixed })
  limit.learn(32, 100 * fixed(32))
  expect(limit.rows).toBe(32)
})

it("takes all of requests whose answers are never late", () => {
  const limit = new BatchLimit(32)
  play(limit, { cost: cliff, left: Infinity })
  expect([limit.rows, limit.next(64)]).toEqual([32, 32])
  play(limit, { cost: cliff })
  expect(limit.rows).toBe(8)
  play(limit, { cost: cliff, left: Infinity })
  expect([limit.rows, limit.next(64)]).toEqual([32, 32])
})

it("any durations give a size, and cut nothing that fits", () => {
  const batch = fc.tuple(fc.integer({ min: 1, max: 100 }), fc.double({ min: 0, max: 1e12, noNaN: true }))
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 100 }), fc.array(batch), fc.double(), (largest, batches, left) => {
      const limit = new BatchLimit(largest)
      for (const [waiting, time] of batches) {
        limit.arrived(left)
        const rows = limit.next(waiting)
        expect(rows).toBeGreaterThan(0)
        expect(rows).toBeLessThanOrEqual(largest)
        if (waiting <= limit.rows) expect(rows).toBeGreaterThanOrEqual(waiting)
        limit.learn(Math.min(rows, waiting), time)
      }
    }),
  )
})
