/** Models from files, through their layers and with the real ONNX Runtime. */
import { assert, describe, it } from "@effect/vitest"
import { Model, Tensor } from "@nereid/core"
import { type FixedDataType, view, byteWidth } from "@nereid/core/internal/tensor/DataType"
import type { Field } from "@nereid/core/internal/model/Field"
import { noParameters } from "@nereid/core/internal/request/Request"
import { infer } from "@nereid/core/internal/running/CallableModel"
import { Context, Effect, Exit, Fiber, Layer, Result, Scope } from "effect"
import { decode } from "fast-png"
import { readdirSync, readFileSync } from "node:fs"
import {
  addSub,
  file,
  initializer,
  model,
  node,
  nonZero,
  reshapeToPairs,
  slow,
  value,
} from "../../../test/fixtures/onnx.ts"
import { Onnx } from "./index.ts"

const examples = new URL("../../../examples/digits/", import.meta.url)

class Digits extends Model.Service<Digits>()("digits", {
  inputs: { image: Tensor.FP32(1, 28, 28) },
  outputs: { logits: Tensor.FP32(10) },
  maxBatchSize: 64,
}) {}

const DigitsLive = Onnx.layer(Digits, { file: new URL("digits.onnx", examples) })

const pictures = new URL("pictures/", examples)

const picture = (digit: number) => {
  const name = readdirSync(pictures).find((name) => name.startsWith(String(digit))) ?? ""
  const { data } = decode(readFileSync(new URL(name, pictures)))
  return Tensor.make(
    "FP32",
    [1, 28, 28],
    Float32Array.from(data, (grey) => grey / 255),
  )
}

const largest = (logits: ArrayLike<number>) => {
  let best = 0
  for (let index = 1; index < logits.length; index++) if ((logits[index] ?? 0) > (logits[best] ?? 0)) best = index
  return best
}

const digits = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]

/** Runs with a layer that is made from the path of a file with these bytes. */
const using = <A, E, R, I, E2>(
  bytes: Uint8Array,
  layer: (path: string) => Layer.Layer<I, E2>,
  use: Effect.Effect<A, E, R>,
) => Effect.scoped(Effect.flatMap(file(bytes), (path) => Effect.provide(use, layer(path))))

describe("digits", () => {
  it.live("one picture", () =>
    Effect.gen(function* () {
      const model = yield* Digits
      const { logits } = yield* model.infer({ image: picture(7) })
      assert.deepEqual(logits.shape, [10])
      assert.equal(largest(logits.data), 7)
      assert.equal(model.model.description.platform, "onnxruntime_onnx")
    }).pipe(Effect.provide(DigitsLive)),
  )

  it.live("a batch of pictures", () =>
    Effect.gen(function* () {
      const model = yield* Digits
      const image = Tensor.make(
        "FP32",
        [10, 1, 28, 28],
        Float32Array.from(digits.flatMap((digit) => [...picture(digit).data])),
      )
      const { logits } = yield* model.inferBatch({ image })
      assert.deepEqual(logits.shape, [10, 10])
      assert.deepEqual(
        digits.map((row) => largest(logits.data.subarray(row * 10, row * 10 + 10))),
        digits,
      )
    }).pipe(Effect.provide(DigitsLive)),
  )

  it.live("concurrent calls share batches, and each has its own answer", () =>
    Effect.gen(function* () {
      const model = yield* Digits
      const pictures = digits.map(picture)
      const responses = yield* Effect.forEach(
        Array.from({ length: 640 }, (_, index) => index % 10),
        (digit) => Effect.map(model.infer({ image: pictures[digit]! }), ({ logits }) => [digit, logits.data] as const),
        { concurrency: 64 },
      )
      // Looked at only now: nothing of them may have been overwritten by later batches.
      for (const [digit, logits] of responses) assert.equal(largest(logits), digit)
      // The last batch is counted after its replies.
      yield* Effect.yieldNow
      const { inferenceCount, executionCount, computeInput, computeOutput } = model.model.description.statistics
      assert.equal(inferenceCount, 640)
      assert.isBelow(executionCount, 200)
      assert.isAbove(computeInput.ns, 0)
      assert.isAbove(computeOutput.ns, 0)
      const [tensor] = responses.map(([, logits]) => logits)
      assert.instanceOf(tensor?.buffer, ArrayBuffer)
    }).pipe(Effect.provide(DigitsLive)),
  )

  it.live("several instances, threads and options", () =>
    Effect.gen(function* () {
      const model = yield* Digits
      const responses = yield* Effect.forEach(digits, (digit) => model.infer({ image: picture(digit) }), {
        concurrency: 10,
      })
      assert.deepEqual(
        responses.map(({ logits }) => largest(logits.data)),
        digits,
      )
    }).pipe(
      Effect.provide(
        Onnx.layer(Digits, {
          file: new URL("digits.onnx", examples),
          instances: 2,
          intraOpThreads: 2,
          interOpThreads: 2,
          graphOptimization: "basic",
        }),
      ),
    ),
  )
})

const fields: ReadonlyArray<readonly [Exclude<FixedDataType, "BF16" | "BOOL">, Field, Field]> = [
  ["UINT8", Tensor.UINT8(4), Tensor.UINT8("n")],
  ["UINT16", Tensor.UINT16(4), Tensor.UINT16("n")],
  ["UINT32", Tensor.UINT32(4), Tensor.UINT32("n")],
  ["UINT64", Tensor.UINT64(4), Tensor.UINT64("n")],
  ["INT8", Tensor.INT8(4), Tensor.INT8("n")],
  ["INT16", Tensor.INT16(4), Tensor.INT16("n")],
  ["INT32", Tensor.INT32(4), Tensor.INT32("n")],
  ["INT64", Tensor.INT64(4), Tensor.INT64("n")],
  ["FP16", Tensor.FP16(4), Tensor.FP16("n")],
  ["FP32", Tensor.FP32(4), Tensor.FP32("n")],
  ["FP64", Tensor.FP64(4), Tensor.FP64("n")],
]

/** A tensor [2,4] of any numeric datatype, at a byte offset that no element type is aligned at. */
const tensor = (datatype: FixedDataType, numbers: ReadonlyArray<number>) => {
  const width = byteWidth(datatype) ?? 1
  const aligned = view(datatype, new ArrayBuffer(numbers.length * width), 0, numbers.length)
  for (const [index, number] of numbers.entries()) {
    aligned[index] = aligned instanceof BigInt64Array || aligned instanceof BigUint64Array ? BigInt(number) : number
  }
  const bytes = new Uint8Array(aligned.byteLength + 1).subarray(1)
  bytes.set(new Uint8Array(aligned.buffer))
  return new Tensor.Tensor(datatype, [2, numbers.length / 2], bytes)
}

const numbers = (data: Tensor.Tensor["data"] | undefined) => Array.from(data ?? [], Number)

for (const [datatype, fixed, dynamic] of fields) {
  for (const [variant, field] of [
    ["fixed", fixed],
    ["dynamic", dynamic],
  ] as const) {
    it.live(`add-sub, ${datatype}, ${variant} dims`, () => {
      class AddSub extends Model.Service<AddSub>()("add_sub", {
        inputs: { A: field, B: field },
        outputs: { SUM: field, DIFFERENCE: field },
        maxBatchSize: 8,
      }) {}
      return using(
        addSub(datatype, ["batch", variant === "fixed" ? 4 : "n"]),
        (path) => Onnx.layer(AddSub, { file: path }),
        Effect.gen(function* () {
          const { model } = yield* AddSub
          const inputs = [tensor(datatype, [3, 4, 5, 6, 7, 8, 9, 10]), tensor(datatype, [1, 2, 3, 1, 2, 3, 1, 2])]
          const request = { id: "", inputs, rows: 2, parameters: noParameters, deadline: undefined }
          const { outputs } = yield* infer(model.calls, request)
          assert.deepEqual(
            outputs.map((tensor) => [tensor?.datatype, ...(tensor?.shape ?? [])]),
            [
              [datatype, 2, 4],
              [datatype, 2, 4],
            ],
          )
          assert.deepEqual(numbers(outputs[0]?.data), [4, 6, 8, 7, 9, 11, 10, 12])
          assert.deepEqual(numbers(outputs[1]?.data), [2, 2, 2, 5, 5, 5, 8, 8])
        }),
      )
    })
  }
}

class Logic extends Model.Service<Logic>()("logic", {
  inputs: { A: Tensor.BOOL(4), B: Tensor.BOOL(4) },
  outputs: { SUM: Tensor.BOOL(4), DIFFERENCE: Tensor.BOOL(4) },
}) {}

it.live("BOOL, without a batch dimension", () =>
  using(
    addSub("BOOL", [4]),
    (path) => Onnx.layer(Logic, { file: path }),
    Effect.gen(function* () {
      const logic = yield* Logic
      const A = Tensor.make("BOOL", [4], Uint8Array.of(1, 1, 0, 0))
      const B = Tensor.make("BOOL", [4], Uint8Array.of(1, 0, 1, 0))
      const { SUM, DIFFERENCE } = yield* logic.infer({ A, B })
      assert.deepEqual([...SUM.data], [1, 0, 0, 0])
      assert.deepEqual([...DIFFERENCE.data], [1, 1, 1, 0])
    }),
  ),
)

class Texts extends Model.Service<Texts>()("texts", {
  inputs: { A: Tensor.BYTES(1), B: Tensor.BYTES(1) },
  outputs: { SUM: Tensor.BYTES(1), DIFFERENCE: Tensor.utf8() },
  maxBatchSize: 8,
}) {}

const bytes = (text: string) => Tensor.make("BYTES", [1], [new TextEncoder().encode(text)])

it.live("a response cache knows its answers by their inputs alone: a file sees nothing else", () =>
  Effect.gen(function* () {
    const { model, infer } = yield* Digits
    const { logits } = yield* infer({ image: picture(7) })
    const repeated = yield* infer({ image: picture(7) }, { parameters: { traceparent: "a" } })
    assert.deepEqual([...repeated.logits.data], [...logits.data])
    assert.equal(largest((yield* infer({ image: picture(8) })).logits.data), 8)
    const { cacheHit, cacheMiss, executionCount } = model.description.statistics
    assert.deepEqual([cacheHit.count, cacheMiss.count, executionCount], [1, 2, 2])
  }).pipe(
    Effect.provide(
      Onnx.layer(Digits, { file: new URL("digits.onnx", examples), responseCache: { maxBytes: 100_000 } }),
    ),
  ),
)

it.live("instances in groups, each with its execution providers", () =>
  Effect.gen(function* () {
    const { model, infer } = yield* Digits
    assert.deepEqual(model.life.instanceGroups(), [
      { name: "digits_0", kind: "CPU", count: 2, gpus: [] },
      { name: "digits_1", kind: "GPU", count: 1, gpus: [1], rateLimiter: { resources: [{ name: "R", count: 1 }] } },
    ])
    assert.equal(largest((yield* infer({ image: picture(7) })).logits.data), 7)
  }).pipe(
    Effect.provide(
      Onnx.layer(Digits, {
        file: new URL("digits.onnx", examples),
        // Falls back to the CPU where there is no such device.
        instances: [
          { count: 2 },
          {
            providers: [{ name: "cuda", deviceId: 1 }, "cpu"],
            rateLimiter: { resources: [{ name: "R", count: 1 }] },
          },
        ],
      }),
    ),
  ),
)

describe("strings", () => {
  it.live("of any language, and empty ones", () =>
    using(
      addSub("BYTES", ["batch", 1]),
      (path) => Onnx.layer(Texts, { file: path }),
      Effect.gen(function* () {
        const texts = yield* Texts
        const words = ["", "Grüße", "日本語", "🦑", "\uFEFFmark"]
        const responses = yield* Effect.forEach(words, (word) => texts.infer({ A: bytes(word), B: bytes("b") }), {
          concurrency: "unbounded",
        })
        assert.deepEqual(
          responses.map(({ SUM }) => new TextDecoder("utf-8", { ignoreBOM: true }).decode(SUM.data[0])),
          words,
        )
        assert.equal(responses[0]?.DIFFERENCE, "b")
      }),
    ),
  )

  it.live("a request whose bytes the runtime cannot take fails alone in its batch", () =>
    using(
      addSub("BYTES", ["batch", 1]),
      (path) => Onnx.layer(Texts, { file: path }),
      Effect.gen(function* () {
        const texts = yield* Texts
        const broken = Tensor.make("BYTES", [1], [Uint8Array.of(0x66, 0xff)])
        const inputs = [bytes("good"), broken, bytes("a\0b"), bytes("also good")]
        const responses = yield* Effect.forEach(
          inputs,
          (A, id) => Effect.result(texts.infer({ A, B: A }, { id: `${id}` })),
          {
            concurrency: "unbounded",
          },
        )
        assert.deepEqual(
          responses.map((response) =>
            Result.isSuccess(response) ? response.success.DIFFERENCE : response.failure.message,
          ),
          [
            "good",
            "[request id: 1] element 0 of input 'A' of model 'texts' is not UTF-8, which ONNX Runtime cannot take",
            "[request id: 2] element 0 of input 'A' of model 'texts' contains a NUL, which ONNX Runtime cannot take",
            "also good",
          ],
        )
      }),
    ),
  )
})

class NonZero extends Model.Service<NonZero>()("non_zero", {
  inputs: { X: Tensor.BOOL("n") },
  outputs: { INDICES: Tensor.INT64(1, "count") },
}) {}

it.live("an output whose shape is known only after the run", () =>
  using(
    nonZero(),
    (path) => Onnx.layer(NonZero, { file: path }),
    Effect.gen(function* () {
      const model = yield* NonZero
      const { INDICES } = yield* model.infer({ X: Tensor.make("BOOL", [5], Uint8Array.of(0, 1, 0, 1, 1)) })
      assert.deepEqual(INDICES.shape, [1, 3])
      assert.deepEqual([...INDICES.data], [1n, 3n, 4n])
      const none = yield* model.infer({ X: Tensor.make("BOOL", [2], Uint8Array.of(0, 0)) })
      assert.deepEqual(none.INDICES.shape, [1, 0])
    }),
  ),
)

class Pairs extends Model.Service<Pairs>()("pairs", {
  inputs: { X: Tensor.FP32("n") },
  outputs: { Y: Tensor.FP32(2) },
  maxBatchSize: 4,
}) {}

it.live("an error of the run fails that batch, and the next one runs", () =>
  using(
    reshapeToPairs(),
    (path) => Onnx.layer(Pairs, { file: path }),
    Effect.gen(function* () {
      const pairs = yield* Pairs
      const wrong = yield* Effect.flip(pairs.infer({ X: Tensor.make("FP32", [3], Float32Array.of(1, 2, 3)) }))
      assert.equal(wrong._tag, "ExecutionFailed")
      assert.match(wrong.message, /^onnx runtime error: .*Reshape/)
      const { Y } = yield* pairs.infer({ X: Tensor.make("FP32", [2], Float32Array.of(1, 2)) })
      assert.deepEqual([...Y.data], [1, 2])
    }),
  ),
)

class Declared extends Model.Service<Declared>()("declared", {
  inputs: { X: Tensor.FP32(4) },
  outputs: { Y: Tensor.FP32(2) },
  maxBatchSize: 4,
}) {}

it.live("an error of a run in a slot fails that batch alone as well", () =>
  using(
    reshapeToPairs(),
    (path) => Onnx.layer(Declared, { file: path }),
    Effect.gen(function* () {
      const model = yield* Declared
      for (let time = 0; time < 5; time++) {
        const wrong = yield* Effect.flip(model.infer({ X: Tensor.make("FP32", [4], new Float32Array(4)) }))
        assert.match(wrong.message, /^onnx runtime error: /)
      }
    }),
  ),
)

class Through extends Model.Service<Through>()("through", {
  inputs: { X: Tensor.FP32(2) },
  outputs: { X: Tensor.FP32(2), Y: Tensor.FP32(2), W: Tensor.FP32(2) },
}) {}

it.live("outputs that are inputs, copies of them, or constants", () =>
  using(
    model({
      inputs: [value("X", "FP32", [2])],
      outputs: [value("X", "FP32", [2]), value("Y", "FP32", [2]), value("W", "FP32", [2])],
      nodes: [node("Identity", ["X"], ["Y"])],
      initializers: [initializer("W", "FP32", [2], Float32Array.of(5, 6))],
    }),
    (path) => Onnx.layer(Through, { file: path }),
    Effect.gen(function* () {
      const through = yield* Through
      for (const first of [1, 2, 3]) {
        const { X, Y, W } = yield* through.infer({ X: Tensor.make("FP32", [2], Float32Array.of(first, 9)) })
        assert.deepEqual([...X.data, ...Y.data, ...W.data], [first, 9, first, 9, 5, 6])
      }
    }),
  ),
)

class Wide extends Model.Service<Wide>()("wide", {
  inputs: { A: Tensor.FP32(1024, 1024), B: Tensor.FP32(1024, 1024) },
  outputs: { SUM: Tensor.FP32(1024, 1024) },
  maxBatchSize: 2,
}) {}

it.live("a batch that outgrows a slot", () =>
  using(
    addSub("FP32", ["batch", 1024, 1024]),
    (path) => Onnx.layer(Wide, { file: path }),
    Effect.gen(function* () {
      const wide = yield* Wide
      const A = Tensor.make(
        "FP32",
        [2, 1024, 1024],
        new Float32Array(2 * 1024 * 1024).map((_, index) => index),
      )
      const { SUM } = yield* wide.inferBatch({ A, B: A })
      assert.equal(SUM.data[2 * 1024 * 1024 - 1], 2 * (2 * 1024 * 1024 - 1))
      const first = Tensor.reshape(Tensor.slice(A, 0, 1), [1024, 1024])
      const one = yield* wide.infer({ A: first, B: first })
      assert.equal(one.SUM.data[1024 * 1024 - 1], 2 * (1024 * 1024 - 1))
    }),
  ),
)

class Slow extends Model.Service<Slow>()("slow", {
  inputs: { X: Tensor.FP32(256) },
  outputs: { Y: Tensor.FP32(256) },
  maxBatchSize: 8,
}) {}

it.live("unloading while it is busy answers everything and leaves the process alive", () =>
  Effect.gen(function* () {
    const path = yield* file(slow(256, 100))
    const scope = yield* Scope.make()
    const context = yield* Layer.buildWithScope(Onnx.layer(Slow, { file: path, instances: 2 }), scope)
    const { infer, model } = Context.get(context, Slow)
    const X = Tensor.make("FP32", [256], new Float32Array(256).fill(3))
    const response = infer({ X })
    yield* response
    const fibers = yield* Effect.forEach(Array.from({ length: 64 }), () =>
      Effect.forkChild(response, { startImmediately: true }),
    )
    while (model.life.pending() === 64) yield* Effect.yieldNow
    yield* Scope.close(scope, Exit.void)
    for (const fiber of fibers) {
      const outcome = yield* Effect.result(Fiber.join(fiber))
      if (Result.isSuccess(outcome)) assert.equal(outcome.success.Y.data[255], 3)
      else assert.equal(outcome.failure._tag, "Unavailable")
    }
  }),
)
