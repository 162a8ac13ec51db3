/** Declared signatures against files, one way to differ after the other. */
import { Model, Tensor } from "@nereid/core"
import type { Fields } from "@nereid/core/internal/model/Field"
import { assert, test } from "vitest"
import { addSub, initializer, model, node, value } from "../../../test/fixtures/onnx.ts"
import { signature } from "./OnnxFile.ts"
import { mismatches } from "./SignatureCheck.ts"

const check = (declared: { inputs: Fields; outputs: Fields; maxBatchSize?: number }, file: Uint8Array) => {
  class Declared extends Model.Service<Declared>()("declared", declared) {}
  const { definition } = Declared
  return mismatches(definition.signature, definition.maxBatchSize, signature(file))
}

const fp32 = (...dims: Array<number | string>) => ({
  inputs: { A: Tensor.FP32(...dims), B: Tensor.FP32(...dims) },
  outputs: { SUM: Tensor.FP32(...dims), DIFFERENCE: Tensor.FP32(...dims) },
})

test("a file that is as declared has no mismatch", () => {
  assert.deepEqual(check(fp32(4), addSub("FP32", [4])), [])
  assert.deepEqual(check({ ...fp32(4), maxBatchSize: 8 }, addSub("FP32", ["batch", 4])), [])
  assert.deepEqual(check({ ...fp32("n"), maxBatchSize: 8 }, addSub("FP32", [-1, "sequence"])), [])
})

test("outputs may be left undeclared, inputs not", () => {
  const { inputs, outputs } = fp32(4)
  assert.deepEqual(check({ inputs, outputs: { SUM: outputs.SUM } }, addSub("FP32", [4])), [])
  assert.deepEqual(check({ inputs: { A: inputs.A }, outputs }, addSub("FP32", [4])), [
    "input 'B': expected no such input, found FP32[4]",
  ])
})

test("every mismatch is named at once, with what was expected and what was found", () => {
  const declared = {
    inputs: { A: Tensor.INT64(4), C: Tensor.FP32(4) },
    outputs: { SUM: Tensor.FP32(5), DIFFERENCE: Tensor.FP32(2, 2), PRODUCT: Tensor.FP32(4) },
  }
  assert.deepEqual(check(declared, addSub("FP32", [4])), [
    "input 'A': expected INT64[4], found FP32[4]",
    "input 'C': expected FP32[4], found none among 'A', 'B'",
    "input 'B': expected no such input, found FP32[4]",
    "output 'SUM': expected FP32[5], found FP32[4]",
    "output 'DIFFERENCE': expected FP32[2,2], found FP32[4]",
    "output 'PRODUCT': expected FP32[4], found none among 'SUM', 'DIFFERENCE'",
  ])
})

test("a declared fixed extent fits a dynamic one of the file, and not the other way round", () => {
  assert.deepEqual(check(fp32(4), addSub("FP32", ["n"])), [])
  assert.include(check(fp32("n"), addSub("FP32", [4])), `input 'A': expected FP32["n"], found FP32[4]`)
  assert.include(check(fp32(-1), addSub("FP32", [4])), "input 'A': expected FP32[-1], found FP32[4]")
})

test("a file whose first dimension is fixed cannot batch", () => {
  const [first] = check({ ...fp32(4), maxBatchSize: 8 }, addSub("FP32", [1, 4]))
  assert.equal(
    first,
    "input 'A': expected FP32[-1,4], found FP32[1,4], whose first dimension is fixed: a maxBatchSize of 8 needs a dynamic one",
  )
})

test("a scalar has no batch dimension", () => {
  const [first] = check({ ...fp32(), maxBatchSize: 8 }, addSub("FP32", []))
  assert.equal(
    first,
    "input 'A': expected FP32[-1], found FP32[], which has no batch dimension for a maxBatchSize of 8",
  )
})

test("an input that the file requires cannot be optional without a default", () => {
  const { inputs, outputs } = fp32(4)
  assert.deepEqual(check({ inputs: { ...inputs, B: Tensor.optional(inputs.B) }, outputs }, addSub("FP32", [4])), [
    "input 'B': expected FP32[4], found FP32[4], which the file requires, but the declaration makes optional without a default",
  ])
  const preset = { ...inputs, B: Tensor.optional(inputs.B, { default: 1 }) }
  assert.deepEqual(check({ inputs: preset, outputs }, addSub("FP32", [4])), [])
})

test("BF16 is a mismatch, as the runtime has no tensors of it", () => {
  const fields = { A: Tensor.BF16(4), B: Tensor.BF16(4) }
  const [first] = check({ inputs: fields, outputs: {} }, addSub("BF16", [4]))
  assert.equal(first, "input 'A': expected BF16[4], found BF16[4], but onnxruntime-node has no BF16 tensors")
})

test("graph inputs with an initializer are constants", () => {
  const file = model({
    inputs: [value("X", "FP32", [2]), value("W", "FP32", [2])],
    outputs: [value("Y", "FP32", [2])],
    nodes: [node("Add", ["X", "W"], ["Y"])],
    initializers: [initializer("W", "FP32", [2], Float32Array.of(1, 2))],
  })
  assert.deepEqual(check({ inputs: { X: Tensor.FP32(2) }, outputs: { Y: Tensor.FP32(2) } }, file), [])
  assert.deepEqual(
    signature(file).inputs.map(({ name }) => name),
    ["X"],
  )
})

test("an output without a shape in the file is compared by its datatype", () => {
  const file = model({
    inputs: [value("X", "FP32", [2])],
    outputs: [value("Y", "FP32")],
    nodes: [node("Identity", ["X"], ["Y"])],
  })
  assert.deepEqual(check({ inputs: { X: Tensor.FP32(2) }, outputs: { Y: Tensor.FP32(7) } }, file), [])
  assert.deepEqual(check({ inputs: { X: Tensor.FP32(2) }, outputs: { Y: Tensor.INT8(7) } }, file), [
    "output 'Y': expected INT8[7], found FP32",
  ])
})

test("symbolic dims keep their names", () => {
  assert.deepEqual(signature(addSub("FP16", ["batch", -1, 3])).inputs[0], {
    name: "A",
    datatype: "FP16",
    type: "FP16",
    dims: ["batch", -1, 3],
  })
})
