/** The heap of idle sequences, compared with a sorted list. */
import * as fc from "fast-check"
import { expect, it } from "vitest"
import { IdleHeap } from "./IdleHeap.ts"

interface Member {
  readonly expiresAt: number
  place: number
}

const member = (expiresAt: number): Member => ({ expiresAt, place: -1 })

it("the first one expires first, whatever joins and leaves", () => {
  const step = fc.oneof(
    fc.record({ add: fc.integer({ min: 0, max: 50 }) }),
    fc.record({ leave: fc.nat() }),
    fc.constant("expire" as const),
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const heap = new IdleHeap<Member>()
      const members: Array<Member> = []
      for (const one of steps) {
        if (typeof one === "object" && "add" in one) {
          const added = member(one.add)
          members.push(added)
          heap.add(added)
        } else {
          const left = one === "expire" ? heap.first : members[one.leave % Math.max(1, members.length)]
          if (left === undefined) continue
          members.splice(members.indexOf(left), 1)
          heap.delete(left)
          expect(left.place).toBe(-1)
        }
        expect(heap.first?.expiresAt).toBe(
          members.length === 0 ? undefined : Math.min(...members.map(({ expiresAt }) => expiresAt)),
        )
      }
      const expired: Array<number> = []
      for (let first = heap.first; first !== undefined; first = heap.first) {
        expired.push(first.expiresAt)
        heap.delete(first)
      }
      expect(expired).toEqual(members.map(({ expiresAt }) => expiresAt).toSorted((one, other) => one - other))
    }),
  )
})

it("one that is not in the heap leaves without effect", () => {
  const heap = new IdleHeap<Member>()
  const one = member(1)
  heap.add(one)
  heap.delete(one)
  heap.delete(one)
  heap.delete(member(2))
  expect(heap.first).toBeUndefined()
})
