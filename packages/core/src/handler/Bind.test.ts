import { expect, it } from "@effect/vitest"
import { Effect, type Layer } from "effect"
import * as Model from "../Model.ts"
import * as Tensor from "../Tensor.ts"

const Identity = Model.bind(
  { name: "Identity", inputs: [Tensor.FP32(1)], outputs: [Tensor.FP32(1)], maxBatchSize: 8 },
  Effect.succeed,
)

it.effect("an identity in one line", () =>
  Effect.gen(function* () {
    const identity = yield* Identity
    const { OUTPUT_1 } = yield* identity.infer({ INPUT_1: Tensor.make("FP32", [1], Float32Array.of(7)) })
    const data: Float32Array = OUTPUT_1.data
    expect([...data]).toEqual([7])
  }).pipe(Effect.provide(Identity.layer)),
)

const Bucketed = Model.bind(
  {
    name: "bucketed",
    inputs: [Tensor.FP32("n"), ["scale", Tensor.optional(Tensor.scalar("FP32"), { default: 2 })]],
    outputs: [Tensor.FP32("n")],
    maxBatchSize: 4,
    batching: {
      ragged: { n: { pad: { INPUT_1: -1 } } },
      groupBy: { inputs: ["scale"] },
      preferredBatchSizes: [2],
      maxQueueDelay: "10 seconds",
    },
  },
  ([x], { value, extents }) => {
    const scale: number = value("scale")
    expect(extents("n")).toEqual([1, 2])
    return [
      Tensor.make(
        "FP32",
        x.shape,
        x.data.map((one) => one * scale),
      ),
    ] as const
  },
)

it.effect("batch options accept the names of positional tensors", () =>
  Effect.gen(function* () {
    const { infer } = yield* Bucketed
    const responses = yield* Effect.forEach(
      [[1], [2, 3]],
      (values) => infer({ INPUT_1: Tensor.make("FP32", [values.length], Float32Array.from(values)) }),
      { concurrency: "unbounded" },
    )
    expect(responses.map(({ OUTPUT_1 }) => [...OUTPUT_1.data])).toEqual([[2], [4, 6]])
  }).pipe(Effect.provide(Bucketed.layer)),
)

export const misnamed = () => [
  Model.bind(
    // @ts-expect-error no input has this dim
    { name: "m", inputs: [Tensor.FP32("n")], outputs: [], maxBatchSize: 2, batching: { ragged: { m: {} } } },
    () => [],
  ),
  Model.bind(
    // @ts-expect-error no input has this name
    { name: "m", inputs: [Tensor.FP32("n")], outputs: [], maxBatchSize: 2, batching: { groupBy: { inputs: ["n"] } } },
    () => [],
  ),
]

const AddSub = Model.bind(
  {
    name: "add-sub",
    inputs: [Tensor.FP32(-1), ["other", Tensor.FP32(-1)], Tensor.optional(Tensor.FP32(1))],
    outputs: [["sum", Tensor.FP32(-1)], Tensor.FP32(-1)],
    maxBatchSize: 4,
    version: 2,
  },
  async ([one, other, scale], { requests }) => {
    expect(requests).toHaveLength(1)
    const by = scale?.data[0] ?? 1
    const sum = one.data.map((value, index) => by * (value + (other.data[index] ?? 0)))
    const difference = one.data.map((value, index) => by * (value - (other.data[index] ?? 0)))
    return [Tensor.make("FP32", one.shape, sum), Tensor.make("FP32", one.shape, difference)]
  },
)

it.effect("tensors are called after their positions, counted from 1, unless they have a name", () =>
  Effect.gen(function* () {
    const { signature, version } = AddSub.definition
    expect(signature.inputs.map(({ name }) => name)).toEqual(["INPUT_1", "other", "INPUT_3"])
    expect(signature.outputs.map(({ name }) => name)).toEqual(["sum", "OUTPUT_2"])
    expect(version).toBe("2")
    const tensor = (...values: ReadonlyArray<number>) => Tensor.make("FP32", [values.length], Float32Array.from(values))
    const addSub = yield* AddSub
    const { sum, OUTPUT_2 } = yield* addSub.infer({ INPUT_1: tensor(1, 2), other: tensor(3, 4) })
    expect([[...sum.data], [...OUTPUT_2.data]]).toEqual([
      [4, 6],
      [-2, -2],
    ])
    const scaled = yield* addSub.infer({
      INPUT_1: tensor(1),
      other: tensor(3),
      INPUT_3: Tensor.make("FP32", [1], Float32Array.of(10)),
    })
    expect([...scaled.sum.data]).toEqual([40])
  }).pipe(Effect.provide(AddSub.layer)),
)

it.effect("reports missing and additional outputs by position", () =>
  Effect.gen(function* () {
    const message = (returned: unknown) => {
      const wrong = Model.bind(
        { name: "wrong", inputs: [Tensor.FP32(1)], outputs: [Tensor.FP32(1)], maxBatchSize: 1 },
        // As a handler without types may have it.
        () => returned as readonly [Tensor.Tensor<"FP32", readonly [number, 1]>],
      )
      const sample = { INPUT_1: Tensor.make("FP32", [1], Float32Array.of(1)) }
      const calling = Effect.flatMap(wrong, ({ infer }) => Effect.flip(infer(sample)))
      return Effect.map(Effect.provide(calling, wrong.layer, { local: true }), (error) => error.message)
    }
    const tensor = Tensor.make("FP32", [1, 1], Float32Array.of(1))
    expect(yield* message([tensor, tensor])).toBe(
      "output 'OUTPUT_2' of model 'wrong': not declared; expected one of 'OUTPUT_1'",
    )
    expect(yield* message([])).toBe("output 'OUTPUT_1' of model 'wrong': missing: declared as FP32[1]")
    expect(yield* message(3)).toContain("missing: expected an object with 'OUTPUT_1', got number")
  }),
)

it.effect("a handler may be built, once per instance, in the scope of the model", () =>
  Effect.gen(function* () {
    const life: Array<string> = []
    const built = Model.bind(
      { name: "built", inputs: [Tensor.FP32(1)], outputs: [Tensor.FP32(1)], instances: 2 },
      Effect.acquireRelease(
        Effect.sync(() => {
          life.push("initialize")
          return ([x]: readonly [Tensor.Tensor<"FP32", readonly [number, 1]>]) => [x] as const
        }),
        () => Effect.sync(() => life.push("finalize")),
      ),
    )
    const calling = Effect.flatMap(built, ({ infer }) =>
      infer({ INPUT_1: Tensor.make("FP32", [1], Float32Array.of(1)) }),
    )
    yield* Effect.provide(calling, built.layer)
    expect(life).toEqual(["initialize", "initialize", "finalize", "finalize"])
  }),
)

it.effect("answers of one with a response cache are kept", () =>
  Effect.gen(function* () {
    let executions = 0
    const cached = Model.bind(
      { name: "cached", inputs: [Tensor.FP32(1)], outputs: [Tensor.FP32(1)], maxBatchSize: 8, responseCache: true },
      ([x]) => {
        executions += 1
        return [x]
      },
    )
    const sample = { INPUT_1: Tensor.make("FP32", [1], Float32Array.of(1)) }
    const calling = Effect.flatMap(cached, ({ infer }) => Effect.andThen(infer(sample), infer(sample)))
    const { OUTPUT_1 } = yield* Effect.provide(calling, cached.layer)
    expect([...OUTPUT_1.data]).toEqual([1])
    expect(executions).toBe(1)
  }),
)

it("two tensors of one side with the same name are refused when the model is made", () => {
  const inputs = [["INPUT_2", Tensor.FP32(1)], Tensor.FP32(1)] as const
  expect(() => Model.bind({ name: "twice", inputs, outputs: [Tensor.FP32(1)] }, ([x]) => [x])).toThrow(
    `Model "twice": two tensors of one side have the name 'INPUT_2'.`,
  )
})

/** Code that must not compile; `tsc` checks each `@ts-expect-error`. */
export const refused = () => {
  const [FP32, INT64] = [Tensor.FP32(1), Tensor.INT64(1)] as const
  // @ts-expect-error another datatype
  void Model.bind({ name: "datatype", inputs: [INT64], outputs: [FP32], maxBatchSize: 8 }, Effect.succeed)
  // @ts-expect-error two in, one out
  void Model.bind({ name: "arity", inputs: [FP32, FP32], outputs: [FP32], maxBatchSize: 8 }, Effect.succeed)
  // @ts-expect-error no such input
  void Model.bind({ name: "missing", inputs: [FP32], outputs: [FP32] }, ([, second]) => [second])
  // @ts-expect-error other dims
  void Model.bind({ name: "dims", inputs: [Tensor.FP32(2)], outputs: [FP32] }, ([x]) => [x])
  // @ts-expect-error a Schema that does not encode to a tensor is not a field
  void Model.bind({ name: "field", inputs: ["FP32"], outputs: [FP32] }, () => [])
  // @ts-expect-error the model is not provided
  const other: Layer.Layer<Model.Bound<"other">> = Identity.layer
  return other
}
