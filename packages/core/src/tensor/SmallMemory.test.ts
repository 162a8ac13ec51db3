import { assert, it } from "@effect/vitest"
import * as SmallMemory from "./SmallMemory.ts"

it("memory is zeroed, aligned for every datatype, and not shared", () => {
  const taken = Array.from({ length: 2000 }, (_, index) => SmallMemory.allocate(index % 1500))
  for (const [index, bytes] of taken.entries()) {
    assert.strictEqual(bytes.length, index % 1500)
    assert.strictEqual(bytes.byteOffset % 8, 0)
    assert(bytes.every((byte) => byte === 0))
    bytes.fill(1 + (index % 255))
  }
  for (const [index, bytes] of taken.entries()) assert(bytes.every((byte) => byte === 1 + (index % 255)))
})

it("a large tensor has a separate buffer", () => {
  const bytes = SmallMemory.allocate(2000)
  assert.strictEqual(bytes.buffer.byteLength, 2000)
})

it("a copy is one, wherever the original begins", () => {
  const original = Uint8Array.of(0, 1, 2, 3).subarray(1)
  const copied = SmallMemory.copy(original)
  assert.deepStrictEqual([...copied], [1, 2, 3])
  assert.strictEqual(copied.byteOffset % 8, 0)
  original.fill(9)
  assert.deepStrictEqual([...copied], [1, 2, 3])
})
