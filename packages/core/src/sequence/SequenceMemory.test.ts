import { expect, it } from "vitest"
import { LentMemory } from "../tensor/LentMemory.ts"
import { TypedTensor } from "../tensor/TypedTensor.ts"
import { SequenceMemory, StateBudget } from "./SequenceMemory.ts"

const memory = () => new SequenceMemory(new StateBudget({ maxStateBytes: 100, maxTotalStateBytes: 100 }))
const bytes = (...values: ReadonlyArray<number>) => new TypedTensor("UINT8", [values.length], Uint8Array.from(values))
const kept = (state: SequenceMemory) => state.tensors?.map((tensor) => [...tensor.bytes])

it("a state is a copy, also of shared memory", () => {
  const state = memory()
  const shared = new Uint8Array(new SharedArrayBuffer(2)).fill(1)
  state.keep([new TypedTensor("UINT8", [2], shared)], true)
  shared.fill(9)
  expect(kept(state)).toEqual([[1, 1]])
  expect(state.tensors?.[0]?.bytes.buffer).toBeInstanceOf(ArrayBuffer)
})

it("a state takes the memory of the one before, where nothing else may hold that", () => {
  const state = memory()
  state.keep([bytes(1, 2)], true)
  const before = state.tensors?.[0]?.bytes
  state.keep([bytes(3, 4)], true)
  expect(kept(state)).toEqual([[3, 4]])
  expect(state.tensors?.[0]?.bytes).toBe(before)
})

it("a state that a handler may hold does not change", () => {
  const state = memory()
  state.keep([bytes(1, 2)], false)
  const before = state.tensors?.[0]?.bytes
  state.keep([bytes(3, 4)], false)
  expect([...(before ?? [])]).toEqual([1, 2])
})

it("a state of another size has its own memory", () => {
  const state = memory()
  state.keep([bytes(1, 2)], true)
  state.keep([bytes(3, 4, 5)], true)
  expect(kept(state)).toEqual([[3, 4, 5]])
})

/** A state in memory that is lent, and that memory. */
const lent = (...values: ReadonlyArray<number>) => {
  const memory = new LentMemory()
  const shared = Uint8Array.from(values)
  return { memory, shared, tensor: new TypedTensor("UINT8", [values.length], shared) }
}

it("a state in lent memory is copied when the memory is reclaimed", () => {
  const state = memory()
  const { memory: lender, shared, tensor } = lent(1, 2)
  state.keep([tensor], true, lender)
  expect(state.tensors?.[0]).toBe(tensor)
  lender.reclaim()
  shared.fill(9)
  expect(kept(state)).toEqual([[1, 2]])
})

it("memory that lent an earlier state no longer matters", () => {
  const state = memory()
  const one = lent(1, 2)
  const other = lent(3, 4)
  state.keep([one.tensor], true, one.memory)
  state.keep([other.tensor], true, other.memory)
  one.memory.reclaim()
  expect(state.tensors?.[0]).toBe(other.tensor)
  state.keep([bytes(5, 6)], true)
  other.memory.reclaim()
  other.shared.fill(9)
  expect(kept(state)).toEqual([[5, 6]])
})

it("a lent state takes the memory of the last one that was copied", () => {
  const state = memory()
  state.keep([bytes(1, 2)], true)
  const before = state.tensors?.[0]?.bytes
  for (const { memory: lender, tensor } of [lent(3, 4), lent(5, 6)]) state.keep([tensor], true, lender)
  expect([...(before ?? [])]).toEqual([1, 2])
  expect(state.ownTensors?.[0]?.bytes).toBe(before)
  expect(kept(state)).toEqual([[5, 6]])
})

it("a state that is over keeps no lent memory", () => {
  const state = memory()
  const { memory: lender, tensor } = lent(1, 2)
  state.keep([tensor], true, lender)
  state.end("ended")
  lender.reclaim()
  expect(state.ownTensors).toBeUndefined()
})
