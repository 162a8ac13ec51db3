/** Addresses in the shared memory. */
import { Model, Tensor } from "@nereid/core"
import type { Fields } from "@nereid/core/internal/model/Field"
import { assert, test } from "vitest"
import * as Slots from "./Slots.ts"

const signature = (inputs: Fields, outputs: Fields = {}) => {
  class Declared extends Model.Service<Declared>()("declared", { inputs, outputs }) {}
  return Declared.definition.signature
}

test("tensors of a slot begin at multiples of 64 bytes, with room for the largest batch", () => {
  const layout = Slots.layout(signature({ A: Tensor.FP32(3), B: Tensor.INT8(5) }, { C: Tensor.FP64() }), 10)
  assert.deepEqual(layout, {
    batching: true,
    rows: 10,
    slotBytes: 128 + 64 + 128,
    inputs: [
      { name: "A", datatype: "FP32", offset: 0, dims: [3], bytesPerRow: 12 },
      { name: "B", datatype: "INT8", offset: 128, dims: [5], bytesPerRow: 5 },
    ],
    outputs: [{ name: "C", datatype: "FP64", offset: 192, dims: [], bytesPerRow: 8 }],
    links: [],
  })
})

test("a state links its input to its output, if both have one size", () => {
  const tensors = signature({ X: Tensor.FP32(1), S: Tensor.FP32(3) }, { S_OUT: Tensor.FP32(3), Y: Tensor.FP32(1) })
  const layout = Slots.layout({ ...tensors, states: [{ input: "S", output: "S_OUT" }] }, 2)
  assert.deepEqual(layout?.links, [{ input: 1, output: layout!.outputs[0]! }])
  assert.deepEqual(Slots.layout({ ...tensors, states: [{ input: "S", output: "Y" }] }, 2)?.links, [])
})

test("a model that does not batch has slots of one row", () => {
  const layout = Slots.layout(signature({ A: Tensor.FP32(3) }), 0)
  assert.include(layout, { batching: false, rows: 1, slotBytes: 64 })
})

test("dynamic shapes and strings have no slots", () => {
  assert.isUndefined(Slots.layout(signature({ A: Tensor.FP32("n") }), 8))
  assert.isUndefined(Slots.layout(signature({ A: Tensor.FP32(2) }, { B: Tensor.FP32(-1) }), 8))
  assert.isUndefined(Slots.layout(signature({ A: Tensor.BYTES(1) }), 8))
})

test("an input that goes out again has no slot", () => {
  assert.isUndefined(Slots.layout(signature({ A: Tensor.FP32(2) }, { A: Tensor.FP32(2) }), 8))
})

test("a slot holds as many rows as its maximum size allows; there is no slot if that is less than one", () => {
  const image = signature({ A: Tensor.FP32(1024) })
  assert.equal(Slots.layout(image, 100, 64 * 1024)?.rows, 15)
  assert.isAtMost(Slots.layout(image, 100, 64 * 1024)?.slotBytes ?? Infinity, 64 * 1024)
  assert.isUndefined(Slots.layout(image, 100, 4096))
})

test("sequence numbers wrap at 32 bits without leaving their order of slots and words", () => {
  const last = 0x7fffffff
  assert.equal(Slots.next(last), -0x80000000)
  const layout = Slots.layout(signature({ A: Tensor.FP32(1) }), 0)!
  const around = [last - 1, last, Slots.next(last), Slots.next(Slots.next(last))]
  assert.deepEqual(
    around.map((sequence) => (Slots.slotOffset(layout, sequence) - Slots.slotOffset(layout, 0)) / layout.slotBytes),
    [0, 1, 0, 1],
  )
  assert.deepEqual(
    around.map((sequence) => Slots.kindWord(sequence) - Slots.kindWord(0)),
    [2, 3, 0, 1],
  )
})
