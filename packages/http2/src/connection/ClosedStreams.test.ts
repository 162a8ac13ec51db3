import { expect, it } from "vitest"
import { ClosedStreams } from "./ClosedStreams.ts"

it("knows the last 128 streams, and how each one has ended", () => {
  const closed = new ClosedStreams()
  expect(closed.get(1)).toBeUndefined()
  for (let id = 1; id <= 999; id += 2) {
    closed.add(id, id % 3 === 0)
    const oldest = Math.max(1, id - 2 * 127)
    for (const known of [oldest, id]) expect(closed.get(known)).toBe(known % 3 === 0 ? "reset" : "ended")
    if (oldest > 1) expect(closed.get(oldest - 2)).toBeUndefined()
  }
})
