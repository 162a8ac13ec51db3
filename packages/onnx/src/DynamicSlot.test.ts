/** Tensors of any shape in the shared memory of a slot. */
import { Model, Tensor } from "@nereid/core"
import type { Fields } from "@nereid/core/internal/model/Field"
import { assert, test } from "vitest"
import * as DynamicSlot from "./DynamicSlot.ts"
import * as Slots from "./Slots.ts"

const layoutOf = (inputs: Fields, outputs: Fields, slotBytes?: number, maxBatchSize = 8) => {
  class Declared extends Model.Service<Declared>()("declared", { inputs, outputs }) {}
  return DynamicSlot.layout(Declared.definition.signature, maxBatchSize, slotBytes)
}

/** The same slot as both threads see it. */
const slots = (slotBytes?: number) => {
  const layout = layoutOf({ A: Tensor.FP32("n"), B: Tensor.INT8("m") }, { C: Tensor.FP64("k") }, slotBytes)!
  const memory = Slots.allocate(layout)
  const at = () => new DynamicSlot.DynamicSlot(layout, memory, Slots.slotOffset(layout, 1))
  return { instance: at(), worker: at() }
}

const floats = (...values: ReadonlyArray<number>) => Tensor.make("FP32", [1, values.length], Float32Array.from(values))
const integers = (shape: ReadonlyArray<number>, ...values: ReadonlyArray<number>) =>
  Tensor.make("INT8", shape, Int8Array.from(values))

const repeated = (length: number, element: number) => Array.from({ length }, () => element)

test("the other thread finds shapes and bytes, at multiples of 64 bytes", () => {
  const { instance, worker } = slots()
  const [a, b] = [floats(1, 2, 3), integers([5, 1], 1, 2, 3, 4, 5)]
  assert.isTrue(instance.writeInputs([a, b]))
  assert.deepEqual(
    [worker.shape(0), worker.shape(1)],
    [
      [1, 3],
      [5, 1],
    ],
  )
  assert.deepEqual([[...worker.bytes(0)], [...worker.bytes(1)]], [[...a.bytes], [...b.bytes]])
  assert.deepEqual([worker.bytes(0).byteOffset % 64, worker.bytes(1).byteOffset % 64], [0, 0])
  const c = Float64Array.of(0.5, -1)
  assert.isTrue(worker.write(2, [2], new Uint8Array(c.buffer)))
  const [output] = instance.copyOutputs()
  assert.deepEqual(output?.dims, [2])
  assert.deepEqual(output?.data, new Uint8Array(c.buffer))
  assert.deepEqual([...worker.bytes(1)], [...b.bytes])
})

test("each batch replaces the one before it, also by less", () => {
  const { instance, worker } = slots()
  for (const length of [3, 200, 0, 1]) {
    const a = floats(...Array.from({ length }, (_, index) => index))
    assert.isTrue(instance.writeInputs([a, integers([1, length], ...repeated(length, length))]))
    assert.deepEqual(worker.shape(0), [1, length])
    assert.deepEqual([...worker.bytes(0)], [...a.bytes])
    assert.deepEqual([...worker.bytes(1)], repeated(length, length))
  }
})

test("a copied output does not change with the slot", () => {
  const { instance, worker } = slots()
  instance.writeInputs([floats(), integers([0])])
  worker.write(2, [1], new Uint8Array(8).fill(1))
  const [output] = instance.copyOutputs()
  instance.writeInputs([floats(), integers([0])])
  worker.write(2, [1], new Uint8Array(8).fill(2))
  assert.deepEqual(output?.data, new Uint8Array(8).fill(1))
})

test("tensors fit up to the last byte", () => {
  // 192 bytes are the header of three tensors; A takes 64.
  const { instance } = slots(192 + 64 + 8)
  assert.isTrue(instance.writeInputs([floats(1), integers([8], ...repeated(8, 1))]))
  assert.isFalse(instance.writeInputs([floats(1), integers([9], ...repeated(9, 1))]))
  assert.isTrue(instance.writeInputs([floats(1), integers([8], ...repeated(8, 1))]))
  assert.isTrue(instance.reserve(2, [0], 0))
  assert.isFalse(instance.reserve(2, [1], 8))
})

test("ranks above 8, extents beyond 31 bits and missing inputs have no place", () => {
  const { instance } = slots()
  assert.isTrue(instance.writeInputs([floats(1), integers([1, 1, 1, 1, 1, 1, 1, 1], 1)]))
  assert.deepEqual(instance.shape(1), [1, 1, 1, 1, 1, 1, 1, 1])
  assert.isFalse(instance.writeInputs([floats(1), integers([1, 1, 1, 1, 1, 1, 1, 1, 1], 1)]))
  assert.isTrue(instance.writeInputs([floats(1), integers([0, 2 ** 31 - 1])]))
  assert.isFalse(instance.writeInputs([floats(1), integers([0, 2 ** 31])]))
  assert.isFalse(instance.writeInputs([floats(1), undefined]))
})

test("outputs of fixed dims are known before the run, unless they are inputs that go out again", () => {
  const A = Tensor.FP32(2)
  const layout = layoutOf({ A, B: Tensor.FP32("n") }, { A, C: Tensor.INT32(3), D: Tensor.FP32("n") })
  assert.deepEqual(layout?.outputs, [
    { name: "A", datatype: "FP32", dims: undefined },
    { name: "C", datatype: "INT32", dims: [3] },
    { name: "D", datatype: "FP32", dims: undefined },
  ])
})

test("strings have no slots, nor has a header that is larger than a slot", () => {
  assert.isUndefined(layoutOf({ A: Tensor.BYTES("n") }, {}))
  assert.isUndefined(layoutOf({ A: Tensor.FP32("n") }, { B: Tensor.BYTES(1) }))
  assert.isUndefined(layoutOf({ A: Tensor.FP32("n") }, { B: Tensor.FP32(1) }, 64))
})
