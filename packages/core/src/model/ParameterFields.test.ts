/** Declared parameters: their values in every kind of handler, and rejected ones. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, type Layer, Result, Schema, Stream } from "effect"
import type { Parameters } from "../request/Request.ts"
import * as Model from "../Model.ts"
import * as ParameterFields from "./ParameterFields.ts"
import { RequestContext } from "../handler/RequestContext.ts"
import { infer } from "../running/CallableModel.ts"
import * as Tensor from "../Tensor.ts"
import * as Testing from "../Testing.ts"
import * as ParameterExample from "./ParameterExample.ts"

const declared = {
  temperature: Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 2 })),
  count: Schema.Int.pipe(Schema.withDecodingDefaultKey(Effect.succeed(8))),
  mode: Schema.optionalKey(Schema.Literals(["plain", "loud"])),
  id: Schema.optionalKey(Schema.BigInt),
  at: Schema.optionalKey(Schema.DateFromString),
}

it("gives an example of each parameter that a request must have", () => {
  const required = {
    ...declared,
    limit: Schema.BigInt,
    on: Schema.Boolean,
    language: Schema.Literals(["de", "en"]),
    even: Schema.Int.check(Schema.makeFilter((value: number) => value % 2 === 0)).annotate({ examples: [4] }),
    impossible: Schema.String.check(Schema.makeFilter(() => false)),
  }
  expect(ParameterExample.make(required)).toEqual({ temperature: 1, limit: 1, on: true, language: "de", even: 4 })
})

class Writer extends Model.Service<Writer>()("writer", {
  inputs: { x: Tensor.scalar("INT32") },
  outputs: { TOLD: Tensor.json(Schema.Unknown) },
  maxBatchSize: 8,
  parameters: declared,
}) {}

class Free extends Model.Service<Free>()("free", {
  inputs: { x: Tensor.scalar("INT32") },
  outputs: { x: Tensor.scalar("INT32") },
  parameters: { limit: Schema.optionalKey(Schema.Int) },
}) {}

describe("as a codec", () => {
  const { decode, encode } = ParameterFields.make(declared)
  const required = { temperature: 1 }

  it.each<readonly [Parameters, object]>([
    [{ temperature: 0.5 }, { temperature: 0.5, count: 8 }],
    [
      { temperature: 1n, count: 3n },
      { temperature: 1, count: 3 },
    ],
    [
      { ...required, mode: "loud", id: 7n },
      { ...required, count: 8, mode: "loud", id: 7n },
    ],
    [
      { ...required, at: "1970-01-01T00:00:00Z" },
      { ...required, count: 8, at: new Date(0) },
    ],
    [
      { ...required, priority: 1n, "x-user": "me" },
      { ...required, count: 8 },
    ],
  ])("%o are %o in code", (raw, expected) => {
    expect(decode(raw)).toEqual(Result.succeed(expected))
  })

  it.each<readonly [Parameters, string, string]>([
    [{}, "temperature", "Missing key"],
    [{ temperature: "hot" }, "temperature", 'Expected number, got "hot"'],
    [{ temperature: 3n }, "temperature", "Expected a value between 0 and 2, got 3"],
    [{ temperature: 2n ** 60n }, "temperature", `Expected number, got ${2n ** 60n}n`],
    [{ temperature: Infinity }, "temperature", "Expected a finite number, got Infinity"],
    [{ ...required, count: 1.5 }, "count", "Expected an integer, got 1.5"],
    [{ ...required, mode: "shy" }, "mode", 'Expected "plain" | "loud", got "shy"'],
    [{ ...required, id: true }, "id", "Expected bigint, got true"],
    [{ ...required, at: "soon" }, "at", "Expected a valid Date, got Invalid Date"],
  ])("%o are refused: %s, %s", (raw, field, message) => {
    expect(decode(raw)).toEqual(Result.fail({ field, message }))
  })

  it("encodes what callers give, and leaves out what they do", () => {
    expect(encode({ temperature: 0.5, at: new Date(0) })).toEqual(
      Result.succeed({ temperature: 0.5, at: "1970-01-01T00:00:00.000Z" }),
    )
    expect(encode({})).toEqual(Result.succeed({}))
    expect(encode({ temperature: 3 })).toEqual(
      Result.fail({ field: "temperature", message: "Expected a value between 0 and 2, got 3" }),
    )
    expect(encode({ temprature: 3 })).toEqual(
      Result.fail({
        field: "temprature",
        message: "not declared; expected one of 'temperature', 'count', 'mode', 'id', 'at'",
      }),
    )
  })

  it("inherited properties of objects are not parameters", () => {
    const { decode } = ParameterFields.make({ toString: Schema.optionalKey(Schema.String) })
    expect(decode({})).toEqual(Result.succeed({}))
  })
})

/** As JSON, whose Schema takes nothing that is undefined. */
const printed = (parameters: Schema.Struct.Type<typeof declared>): string =>
  JSON.stringify({ ...parameters, at: parameters.at?.getTime() })
const bytes = (text: string) => new TextEncoder().encode(text)

const modes: ReadonlyArray<readonly [string, Layer.Layer<Writer>]> = [
  ["each", Model.each(Writer, (_, { parameters }) => ({ TOLD: JSON.parse(printed(parameters)) }))],
  [
    "requests",
    Model.requests(Writer, (requests) =>
      requests.map(({ parameters }) =>
        Result.succeed({ TOLD: Tensor.make("BYTES", [1, 1], [bytes(printed(parameters))]) }),
      ),
    ),
  ],
  [
    "batch",
    Model.batch(Writer, (_, { requests }) => {
      const texts = requests.map(({ parameters }) => bytes(printed(parameters)))
      return { TOLD: Tensor.make("BYTES", [texts.length, 1], texts) }
    }),
  ],
  ["stream", Model.stream(Writer, (_, { parameters }) => Stream.succeed({ TOLD: JSON.parse(printed(parameters)) }))],
]

describe.each(modes)("%s", (_, layer) => {
  it.effect("has them decoded, the same from callers in code and from the wire", () =>
    Effect.gen(function* () {
      const writer = yield* Testing.model(layer)
      const one = { x: 1 }
      expect(yield* writer.infer(one, { parameters: { temperature: 1, mode: "loud", at: new Date(5) } })).toEqual({
        TOLD: { temperature: 1, count: 8, mode: "loud", at: 5 },
      })
      expect(yield* writer.infer(one, { parameters: { temperature: 0, count: 3 } })).toEqual({
        TOLD: { temperature: 0, count: 3 },
      })
      const [reported] = yield* Stream.runCollect(writer.generate({ x: 1, temperature: 1, count: 2 }))
      expect(JSON.parse(String(reported?.["TOLD"]))).toEqual({ temperature: 1, count: 2 })
    }),
  )

  it.effect("a request whose parameters do not fit fails alone, ahead of the queue", () =>
    Effect.gen(function* () {
      const writer = yield* Testing.model(layer)
      const call = (parameters: Parameters, id = "") =>
        Effect.result(
          infer(writer.model.calls, {
            id,
            inputs: [Tensor.make("INT32", [1, 1], Int32Array.of(1))],
            rows: 1,
            parameters,
            deadline: undefined,
          }),
        )
      const [good, bad] = yield* Effect.all([call({ temperature: 1n }), call({ temperature: 9n }, "7")], {
        concurrency: "unbounded",
      })
      expect(Result.isSuccess(good)).toBe(true)
      expect(bad).toMatchObject({
        failure: {
          _tag: "InvalidRequest",
          message: "[request id: 7] parameter 'temperature' of model 'writer': Expected a value between 0 and 2, got 9",
        },
      })
      expect(writer.model.description.statistics.failures.REJECTED).toBe(1)
      expect(yield* writer.executions).toEqual([{ rows: 1, requests: 1 }])
    }),
  )
})

it.effect("a RequestContext has them as they came", () =>
  Effect.gen(function* () {
    const reported = Model.each(Writer, () =>
      Effect.map(RequestContext, ({ parameters }) => ({ TOLD: Object.keys(parameters) })),
    )
    const writer = yield* Testing.model(reported)
    expect(yield* writer.infer({ x: 1 }, { parameters: { temperature: 1 } })).toEqual({ TOLD: ["temperature"] })
  }),
)

/** Negative type tests, which `tsc` checks. */
export const callers = Effect.gen(function* () {
  const writer = yield* Writer
  const free = yield* Free
  yield* writer.infer({ x: 1 }, { parameters: { temperature: 1 } })
  yield* writer.infer({ x: 1 }, { parameters: { temperature: 1, count: 2, at: new Date() }, id: "7" })
  yield* free.infer({ x: 1 })
  yield* free.infer({ x: 1 }, { timeout: "1 second" })
  yield* free.infer({ x: 1 }, { parameters: { limit: 3 } })
  // @ts-expect-error a required parameter is missing
  yield* writer.infer({ x: 1 })
  // @ts-expect-error a required parameter is missing
  yield* writer.infer({ x: 1 }, { id: "7" })
  // @ts-expect-error of the wrong type
  yield* writer.infer({ x: 1 }, { parameters: { temperature: "hot" } })
  // @ts-expect-error none of the literals
  yield* writer.infer({ x: 1 }, { parameters: { temperature: 1, mode: "shy" } })
  // @ts-expect-error not declared
  yield* free.infer({ x: 1 }, { parameters: { temperature: 1 } })
  // @ts-expect-error the same of streams
  void writer.stream({ x: 1 })
  const batch = { x: Tensor.make("INT32", [1, 1], Int32Array.of(1)) }
  // @ts-expect-error and of batches
  yield* writer.inferBatch(batch)
})

export const handlers = [
  Model.each(Writer, (_, { parameters }) => {
    const temperature: number = parameters.temperature
    const count: number = parameters.count
    const at: Date | undefined = parameters.at
    // @ts-expect-error not declared
    void parameters.warmth
    // @ts-expect-error may be absent
    const mode: string = parameters.mode
    return { TOLD: [temperature, count, at, mode] }
  }),
]

export const refused = () => {
  class Odd extends Model.Service<Odd>()("odd", {
    inputs: {},
    outputs: {},
    // @ts-expect-error no parameter of the protocol
    parameters: { list: Schema.Array(Schema.Number) },
  }) {}
  return Odd
}
