import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { noParameters, type Request } from "../request/Request.ts"
import * as Model from "../Model.ts"
import { RequestContext } from "./RequestContext.ts"
import { infer } from "../running/CallableModel.ts"
import * as Tensor from "../Tensor.ts"

class Echo extends Model.Service<Echo>()("echo", {
  inputs: { x: Tensor.scalar("INT32") },
  outputs: { x: Tensor.scalar("INT32") },
  maxBatchSize: 8,
}) {}

const parameters = { flag: true, integer: -3n, double: 2, text: "ä" }

const request = (values: ReadonlyArray<number>, rest: Partial<Request> = {}): Request => ({
  id: "",
  inputs: [Tensor.make("INT32", [values.length, 1], Int32Array.from(values))],
  rows: values.length,
  parameters: noParameters,
  deadline: undefined,
  ...rest,
})

it.effect("each: a handler knows the id, the parameters, the deadline and the outputs of its request", () =>
  Effect.gen(function* () {
    const seen: Array<unknown> = []
    const layer = Model.each(Echo, ({ x }) =>
      Effect.gen(function* () {
        const { id, rows, parameters, deadline, remaining, requestedOutputs } = yield* RequestContext
        seen.push({ id, rows, parameters, deadline, remaining: remaining(), requestedOutputs })
        return { x }
      }),
    )
    yield* Effect.gen(function* () {
      const { model, infer: call } = yield* Echo
      yield* infer(model.calls, request([1], { id: "a", parameters, deadline: 5_000, requestedOutputs: ["x"] }))
      yield* call({ x: 1 }, { id: "b", timeout: "1 second", parameters: { text: "typed" } })
      yield* call({ x: 1 })
    }).pipe(Effect.provide(layer))
    expect(seen).toEqual([
      { id: "a", rows: 1, parameters, deadline: 5_000, remaining: 5_000, requestedOutputs: ["x"] },
      { id: "b", rows: 1, parameters: { text: "typed" }, deadline: 1_000, remaining: 1_000, requestedOutputs: [] },
      { id: "", rows: 1, parameters: {}, deadline: undefined, remaining: undefined, requestedOutputs: [] },
    ])
  }),
)

const naming = Model.each(
  Echo,
  Effect.succeed(({ x }: { readonly x: number }) =>
    Effect.gen(function* () {
      const context = yield* RequestContext
      if (x > 0) yield* context.setParameter("x", BigInt(x))
      if (x === 99) yield* context.setParameter("large", 2n ** 64n)
      return { x }
    }),
  ),
)

it.effect("each: parameters of a response are those of its request alone, also within one batch", () =>
  Effect.gen(function* () {
    const { model } = yield* Echo
    const responses = yield* Effect.all(
      [request([0]), request([1]), request([2, 3])].map((one) => infer(model.calls, one)),
      { concurrency: "unbounded" },
    )
    expect(model.description.statistics.executionCount).toBe(1)
    expect(responses.map((response) => response.parameters)).toEqual([{}, { x: 1n }, { x: 3n }])
  }).pipe(Effect.provide(naming)),
)

it.effect("each: a response parameter beyond 64 bits fails its request, and the model goes on", () =>
  Effect.gen(function* () {
    const { infer: call } = yield* Echo
    expect(yield* Effect.flip(call({ x: 99 }))).toMatchObject({ _tag: "ExecutionFailed" })
    expect(yield* call({ x: 1 })).toEqual({ x: 1 })
  }).pipe(Effect.provide(naming)),
)

it.effect.each([undefined, null, { a: 1 }, () => 1])(
  "a response parameter that does not travel, %o, fails its request: handlers without types have such",
  (value: unknown) =>
    Effect.gen(function* () {
      const { infer: call } = yield* Echo
      expect(yield* Effect.flip(call({ x: 1 }))).toMatchObject({
        _tag: "ExecutionFailed",
        message: expect.stringContaining(
          `response parameter 'odd' must be a boolean, bigint, number or string, got ${typeof value}`,
        ),
      })
    }).pipe(
      Effect.provide(
        Model.each(Echo, ({ x }, { setParameterUnsafe }) => {
          setParameterUnsafe("odd", value as string)
          return { x }
        }),
      ),
    ),
)

it.effect("batch: receives the request contexts with the tensors, and sets parameters for each response", () =>
  Effect.gen(function* () {
    const { model } = yield* Echo
    const responses = yield* Effect.all(
      [request([1, 2], { id: "a" }), request([3], { id: "b", parameters })].map((one) => infer(model.calls, one)),
      { concurrency: "unbounded" },
    )
    expect(model.description.statistics.executionCount).toBe(1)
    expect(responses.map((response) => response.parameters)).toEqual([{ seen: "a 2" }, { seen: "b 1 ä" }])
  }).pipe(
    Effect.provide(
      Model.batch(Echo, ({ x }, { requests }) => {
        for (const { id, rows, parameters, setParameterUnsafe } of requests) {
          setParameterUnsafe("seen", [id, rows, ...Object.values(parameters).slice(3)].join(" "))
        }
        return { x }
      }),
    ),
  ),
)
