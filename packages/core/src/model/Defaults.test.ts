/** Optional inputs, with a default and without one, as handlers of every kind have them. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber, Result, Stream } from "effect"
import { spec } from "./Field.ts"
import * as Model from "../Model.ts"
import * as Tensor from "../Tensor.ts"
import * as Testing from "../Testing.ts"

class Blend extends Model.Service<Blend>()("blend", {
  inputs: {
    x: Tensor.FP32("n"),
    weights: Tensor.optional(Tensor.FP32("n"), { default: 0.5 }),
    offset: Tensor.optional(Tensor.FP32(2), { default: Tensor.make("FP32", [2], Float32Array.of(10, 20)) }),
    language: Tensor.optional(Tensor.utf8(), { default: "en" }),
    more: Tensor.optional(Tensor.scalar("INT32")),
  },
  outputs: { y: Tensor.FP32("n"), text: Tensor.utf8() },
  maxBatchSize: 4,
  batching: { maxQueueDelay: "5 millis" },
}) {}

const floats = (...values: ReadonlyArray<number>) => Tensor.make("FP32", [values.length], Float32Array.from(values))

const print = (x: Float32Array, weights: Float32Array, offset: Float32Array) =>
  `${[...x]} ${[...weights]} ${[...offset]}`

it.effect("each: a default replaces a missing input; without a default the key is missing", () =>
  Effect.gen(function* () {
    const model = yield* Testing.model(
      Model.each(Blend, ({ x, weights, offset, language, more }) => ({
        y: x,
        text: `${print(x.data, weights.data, offset.data)} ${language} ${more ?? "none"}`,
      })),
    )
    const infer = (sample: Model.Input<(typeof Blend)["definition"]["inputs"]>) => Effect.forkChild(model.infer(sample))
    const pending = [
      yield* infer({ x: floats(1, 2, 3) }),
      yield* infer({
        x: floats(1),
        weights: floats(7),
        offset: Tensor.make("FP32", [2], Float32Array.of(1, 2)),
        language: "",
        more: 3,
      }),
    ]
    yield* Testing.advance("5 millis")
    expect((yield* Effect.forEach(pending, Fiber.join)).map(({ text }) => text)).toEqual([
      "1,2,3 0.5,0.5,0.5 10,20 en none",
      "1 7 1,2  3",
    ])
  }),
)

it.effect("batch: requests with and without an optional input share a batch only if it has a default", () =>
  Effect.gen(function* () {
    const seen: Array<string> = []
    const model = yield* Testing.model(
      Model.batch(Blend, ({ x, weights, offset, language, more }) => {
        const texts = language.data.map((text) => new TextDecoder().decode(text))
        seen.push(
          `${print(x.data, weights.data, offset.data)} ${texts} ${more === undefined ? "none" : [...more.data]}`,
        )
        return { y: x, text: language }
      }),
    )
    const requests: ReadonlyArray<Model.Input<(typeof Blend)["definition"]["inputs"]>> = [
      { x: floats(1) },
      { x: floats(2), weights: floats(7) },
      { x: floats(3), more: 9 },
    ]
    const pending = yield* Effect.forkChild(
      Effect.forEach(requests, (sample) => model.infer(sample), { concurrency: "unbounded" }),
    )
    yield* Testing.advance("5 millis")
    expect((yield* Fiber.join(pending)).map(({ y }) => [...y.data])).toEqual([[1], [2], [3]])
    expect(seen).toEqual(["1,2 0.5,7 10,20,10,20 en,en none", "3 0.5 10,20 en 9"])
  }),
)

it.effect("a request of several rows has it in each; so for requests, streams, bind and models that do not batch", () =>
  Effect.gen(function* () {
    const rows = yield* Testing.model(
      Model.requests(Blend, (requests) =>
        requests.map(({ inputs }) => Result.succeed({ y: inputs.weights, text: inputs.language })),
      ),
    )
    const pending = yield* Effect.forkChild(rows.inferBatch({ x: Tensor.make("FP32", [2, 3], new Float32Array(6)) }))
    yield* Testing.advance("5 millis")
    const { y, text } = yield* Fiber.join(pending)
    expect([y.shape, [...y.data], text.shape, text.data.length]).toEqual([[2, 3], Array(6).fill(0.5), [2, 1], 2])

    class Say extends Model.Service<Say>()("say", {
      inputs: { text: Tensor.utf8(), times: Tensor.optional(Tensor.scalar("UINT8"), { default: 2 }) },
      outputs: { text: Tensor.utf8() },
    }) {}
    const stream = yield* Testing.model(
      Model.stream(Say, function* ({ text, times }) {
        for (let time = 0; time < times; time++) yield { text }
      }),
    )
    expect(yield* Stream.runCollect(stream.stream({ text: "hi" }))).toHaveLength(2)

    const Bound = Model.bind(
      {
        name: "bound",
        inputs: [Tensor.INT32(1), Tensor.optional(Tensor.INT32(1), { default: 5 })],
        outputs: [Tensor.INT32(1)],
        maxBatchSize: 2,
      },
      ([, second]) => [second] as const,
    )
    const { OUTPUT_1 } = yield* Effect.flatMap(Bound, (bound) =>
      bound.infer({ INPUT_1: Tensor.make("INT32", [1], Int32Array.of(1)) }),
    ).pipe(Effect.provide(Bound.layer))
    expect([...OUTPUT_1.data]).toEqual([5])
  }),
)

describe("a default", () => {
  it("is part of the spec", () => {
    expect(spec("x", Tensor.optional(Tensor.INT16("n", 2), { default: -1 }))).toMatchObject({
      optional: true,
      default: { element: Uint8Array.of(255, 255) },
    })
    expect(spec("x", Tensor.optional(Tensor.labels(["a", "b"]), { default: "b" }))).toMatchObject({
      default: { row: { datatype: "INT32", shape: [1] } },
    })
    expect(spec("x", Tensor.optional(Tensor.BYTES(2), { default: "ab" }))).toMatchObject({
      default: { element: new TextEncoder().encode("ab") },
    })
  })

  it("that does not fit is refused when the model is declared", () => {
    const smuggle = (value: unknown) => ({ default: value as never })
    expect(() => Tensor.optional(Tensor.INT8(2), smuggle(300))).toThrow("neither a tensor nor an element of it: 300")
    expect(() => Tensor.optional(Tensor.INT8(2), smuggle(Tensor.make("INT8", [3], new Int8Array(3))))).toThrow(
      "INT8[2]",
    )
    expect(() => Tensor.optional(Tensor.FP32(-1), smuggle(0))).toThrow("must be a tensor")
    expect(() => Tensor.optional(Tensor.FP32("n"), smuggle(floats(1)))).toThrow("must be one element")
    expect(() => Tensor.optional(Tensor.utf8(), smuggle(1))).toThrow()
    expect(() =>
      Model.Service()("m", { inputs: { x: Tensor.optional(Tensor.FP32("n"), { default: 0 }) }, outputs: {} }),
    ).toThrow('Model "m": input "x" has a default, but no input that is required has dimension "n".')
  })
})
