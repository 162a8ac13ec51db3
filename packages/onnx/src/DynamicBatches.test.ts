/** Batches whose shapes change, by ONNX Runtime: in slots for any shapes, and by messages if those are too small. */
import { assert, it } from "@effect/vitest"
import { Model, Tensor } from "@nereid/core"
import { Effect } from "effect"
import { Worker } from "node:worker_threads"
import { initializer, model, node, reshapeToPairs, value } from "../../../test/fixtures/onnx.ts"
import { byMessage, inSlot, largeOutput, run, started } from "./DynamicBatches.fixture.ts"
import * as Slots from "./Slots.ts"
import type { Spawn } from "./WorkerInstance.ts"

const floats = (length: number, first = 0) =>
  Tensor.make(
    "FP32",
    [length],
    Float32Array.from({ length }, (_, index) => first + index),
  )

class Doubled extends Model.Service<Doubled>()("doubled", {
  inputs: { X: Tensor.FP32("n") },
  outputs: { Y: Tensor.FP32("n") },
}) {}

const doubled = model({
  inputs: [value("X", "FP32", ["n"])],
  outputs: [value("Y", "FP32", ["n"])],
  nodes: [node("Add", ["X", "X"], ["Y"])],
})

it.live("lengths change from batch to batch, with two in flight, and a batch beyond a slot travels as a message", () =>
  Effect.gen(function* () {
    const { instance, way } = yield* started(Doubled.definition, doubled)
    const lengths = [3, 0, 100_000, 1, 500_000, 7, 2, 200_000, 0, 64]
    const expected = [inSlot, inSlot, inSlot, inSlot, byMessage, inSlot, inSlot, largeOutput, inSlot, inSlot]
    const check = Effect.fnUntraced(function* (length: number, sequence: number) {
      const [Y] = yield* run(instance, floats(length, sequence))
      assert.deepEqual(way(sequence), expected[sequence], `batch ${sequence}`)
      assert.deepEqual(Y?.shape, [length])
      assert.deepEqual(
        Y?.data,
        floats(length, sequence).data.map((element) => 2 * element),
      )
    })
    yield* Effect.forEach(lengths, check, { concurrency: 2 })
  }),
)

class Count extends Model.Service<Count>()("count", {
  inputs: { N: Tensor.INT64("dims"), X: Tensor.FP32("n") },
  outputs: { X: Tensor.FP32("n"), ONES: Tensor.FP32(-1), FIRST: Tensor.FP32(1) },
}) {}

it.live("outputs that only the run can size, of fixed dims, and inputs that go out again, share a slot", () =>
  Effect.gen(function* () {
    const count = model({
      inputs: [value("N", "INT64", ["dims"]), value("X", "FP32", ["n"])],
      outputs: [value("X", "FP32", ["n"]), value("ONES", "FP32", ["count"]), value("FIRST", "FP32", [1])],
      nodes: [node("Expand", ["ONE", "N"], ["ONES"]), node("Gather", ["X", "ZERO"], ["FIRST"])],
      initializers: [
        initializer("ONE", "FP32", [1], Float32Array.of(1)),
        initializer("ZERO", "INT64", [1], BigInt64Array.of(0n)),
      ],
    })
    const { instance, way } = yield* started(Count.definition, count)
    const lengths = [2, 70_000, 300_000, 1]
    for (const [sequence, length] of lengths.entries()) {
      const outputs = yield* run(
        instance,
        Tensor.make("INT64", [1], BigInt64Array.of(BigInt(length))),
        floats(5, sequence),
      )
      assert.deepEqual(way(sequence), length === 300_000 ? largeOutput : inSlot)
      assert.deepEqual(
        outputs.map((output) => output?.shape),
        [[5], [length], [1]],
      )
      const [X, ONES, FIRST] = outputs
      assert.deepEqual(X?.data, floats(5, sequence).data)
      assert.deepEqual(ONES?.data, new Float32Array(length).fill(1))
      assert.deepEqual(FIRST?.data, Float32Array.of(sequence))
    }
  }),
)

class Pairs extends Model.Service<Pairs>()("pairs", {
  inputs: { X: Tensor.FP32("n") },
  outputs: { Y: Tensor.FP32(2) },
  maxBatchSize: 4,
}) {}

class Wrong extends Model.Service<Wrong>()("wrong", {
  inputs: { X: Tensor.FP32("n") },
  outputs: { Y: Tensor.FP32(2) },
}) {}

const row = (length: number) => Tensor.make("FP32", [1, length], floats(length).data)

it.live("a failed run, and an output with other dims than declared, fail their batch alone", () =>
  Effect.gen(function* () {
    const { instance, way } = yield* started(Pairs.definition, reshapeToPairs())
    assert.match((yield* Effect.flip(run(instance, row(3)))).message, /^onnx runtime error: .*Reshape/)
    assert.deepEqual(way(0), [Slots.DYNAMIC, Slots.BY_MESSAGE])
    const [Y] = yield* run(instance, row(2))
    assert.deepEqual(Y?.data, Float32Array.of(0, 1))
    const wrong = yield* started(Wrong.definition, doubled)
    assert.equal(
      (yield* Effect.flip(run(wrong.instance, floats(3)))).message,
      "output 'Y' of model 'wrong' has shape [3], but is declared as FP32[2]",
    )
    assert.deepEqual((yield* run(wrong.instance, floats(2)))[0]?.data, Float32Array.of(0, 2))
  }),
)

class Twice extends Model.Service<Twice>()("twice", {
  inputs: { X: Tensor.FP32("n") },
  outputs: { Y: Tensor.FP32("n"), FIXED: Tensor.FP32(2) },
  maxBatchSize: 4,
}) {}

it.live.each([
  [[2, 2], 3],
  [[2, 2], 400_000],
  [[1, 1, 2], 3],
  [[1, 1, 2], 400_000],
] as const)(
  "an output of the shape %j in place of [1,2] fails its batch of %d columns with the same text",
  ([dims, n]) =>
    Effect.gen(function* () {
      const bytes = model({
        inputs: [value("X", "FP32", ["rows", "n"])],
        outputs: [value("Y", "FP32", ["rows", "n"]), value("FIXED", "FP32", ["others", "k"])],
        nodes: [node("Add", ["X", "X"], ["Y"])],
        initializers: [initializer("FIXED", "FP32", [...dims], Float32Array.of(1, 2, 3, 4).slice(0, 2 * dims[0]))],
      })
      const { instance } = yield* started(Twice.definition, bytes)
      const X = Tensor.make("FP32", [1, n], new Float32Array(n))
      assert.equal(
        (yield* Effect.flip(run(instance, X))).message,
        `output 'FIXED' of model 'twice' has shape [${dims}], but is declared as FP32[1,2]`,
      )
    }),
)

/** Loads, takes a batch, and dies after it has begun to write outputs. */
const dies: Spawn = (options) =>
  new Worker(
    `const { parentPort, workerData: { memory, dynamic } } = require("node:worker_threads")
    parentPort.postMessage({ _tag: "Loaded", provider: "cpu", refused: [] })
    Atomics.wait(new Int32Array(memory), ${Slots.HEAD}, 0)
    new Uint8Array(memory, memory.byteLength - dynamic.slotBytes).fill(255)
    throw new Error("out of luck")`,
    { ...options, eval: true },
  )

it.live("a thread that dies with two slots in use fails both batches", () =>
  Effect.gen(function* () {
    const { instance } = yield* started(Doubled.definition, doubled, dies)
    const failures = yield* Effect.all(
      [3, 5].map((length) => Effect.flip(run(instance, floats(length)))),
      {
        concurrency: 2,
      },
    )
    for (const { message } of failures) {
      assert.equal(message, "the worker thread of model 'doubled' died while it had this batch: out of luck")
    }
  }),
)
