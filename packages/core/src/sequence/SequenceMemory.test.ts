import { expect, it } from "vitest"
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
