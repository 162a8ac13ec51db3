import { expect, it } from "vitest"
import { decompressing } from "./ZlibPool.ts"

it("four decompressions run at once, the others in their turn, and one that fails makes room too", async () => {
  const started: Array<number> = []
  const gates = Array.from({ length: 6 }, () => Promise.withResolvers<number>())
  const all = gates.map(({ promise }, index) =>
    decompressing(() => {
      started.push(index)
      return promise
    }),
  )
  expect(started).toEqual([0, 1, 2, 3])
  gates[1]?.reject(new Error("corrupt"))
  await expect(all[1]).rejects.toThrow("corrupt")
  expect(started).toEqual([0, 1, 2, 3, 4])
  gates[0]?.resolve(0)
  expect(await all[0]).toBe(0)
  expect(started).toEqual([0, 1, 2, 3, 4, 5])
  gates.forEach(({ resolve }, index) => resolve(index))
  await Promise.allSettled(all)
  await expect(decompressing(() => Promise.resolve("again"))).resolves.toBe("again")
})
