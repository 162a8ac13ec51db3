import { assert, it } from "@effect/vitest"
import * as TextMemo from "./TextMemo.ts"

it("computes repeated keys once, and keeps a limited number of results", () => {
  let computed = 0
  const length = TextMemo.make((text) => {
    computed += 1
    return { length: text.length }
  }, 2)
  assert.strictEqual(length("a"), length("a"))
  assert.strictEqual(computed, 1)
  length("bb")
  length("ccc")
  assert.deepStrictEqual([length("a").length, computed], [1, 4])
})

it("long texts are computed each time", () => {
  let computed = 0
  const once = TextMemo.make(() => ({ computed: ++computed }), 10)
  const long = "x".repeat(1000)
  assert.deepStrictEqual([once(long).computed, once(long).computed], [1, 2])
})
