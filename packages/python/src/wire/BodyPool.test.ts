/** Memory that is used again, and its bounds. */
import { expect, it } from "vitest"
import { BodyPool } from "./BodyPool.ts"

it("memory that was released is taken again, by a body of a near size", () => {
  const pool = new BodyPool()
  const first = pool.take(1_000_000)
  first.release()
  const second = pool.take(990_000)
  expect(second.bytes.buffer).toBe(first.bytes.buffer)
  expect(second.bytes.length).toBe(990_000)
  expect(pool.freeBytes).toBe(0)
})

it("memory that is still used is not taken again, and a second release does nothing", () => {
  const pool = new BodyPool()
  const first = pool.take(100_000)
  first.release()
  const second = pool.take(100_000)
  first.release()
  expect(pool.take(100_000).bytes.buffer).not.toBe(second.bytes.buffer)
})

it("free memory is bounded in bytes, and in pieces of one size", () => {
  const pool = new BodyPool(1_000_000)
  for (const memory of [pool.take(600_000), pool.take(600_000)]) memory.release()
  expect(pool.freeBytes).toBeLessThanOrEqual(1_000_000)
  const small = new BodyPool()
  for (const memory of Array.from({ length: 20 }, () => small.take(40_000))) memory.release()
  expect(small.freeBytes).toBe(8 * 40_960)
})
