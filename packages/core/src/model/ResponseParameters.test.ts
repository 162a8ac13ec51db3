/**
 * Declared parameters of responses: what handlers set in every mode, and what their callers have. Over sockets:
 * test/errors.test.ts.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Result, Schema, Stream } from "effect"
import * as Model from "../Model.ts"
import { RequestContext } from "../handler/RequestContext.ts"
import * as Tensor from "../Tensor.ts"
import * as Testing from "../Testing.ts"

class Told extends Model.Service<Told>()("told", {
  inputs: { x: Tensor.scalar("INT32") },
  outputs: { y: Tensor.scalar("INT32") },
  responseParameters: {
    at: Schema.DateTimeUtcFromString.pipe(Schema.optionalKey),
    language: Schema.Literals(["de", "en"]),
    count: Schema.optionalKey(Schema.Int),
  },
  maxBatchSize: 4,
}) {}

describe("every mode", () => {
  it.effect.each([
    [
      "each",
      Model.each(Told, ({ x }, { setParameterUnsafe }) => {
        setParameterUnsafe("language", "en")
        setParameterUnsafe("count", 3)
        return { y: x }
      }),
    ],
    [
      "each, an effect",
      Model.each(Told, ({ x }, { setParameter }) =>
        Effect.as(Effect.andThen(setParameter("language", "en"), setParameter("count", 3)), { y: x }),
      ),
    ],
    [
      "each, by RequestContext, as they go",
      Model.each(
        Told,
        Effect.fn(function* ({ x }) {
          const { setParameter } = yield* RequestContext
          yield* setParameter("language", "en")
          yield* setParameter("count", 3n)
          return { y: x }
        }),
      ),
    ],
    [
      "batch",
      Model.batch(Told, ({ x }, { requests }) => {
        for (const { setParameterUnsafe } of requests) {
          setParameterUnsafe("language", "en")
          setParameterUnsafe("count", 3)
        }
        return { y: x }
      }),
    ],
    [
      "requests",
      Model.requests(Told, (requests) =>
        requests.map(({ inputs, setParameterUnsafe }) => {
          setParameterUnsafe("language", "en")
          setParameterUnsafe("count", 3)
          return Result.succeed({ y: inputs.x })
        }),
      ),
    ],
    [
      "stream",
      Model.stream(Told, function* ({ x }, { setParameterUnsafe }) {
        setParameterUnsafe("language", "en")
        setParameterUnsafe("count", 3)
        yield { y: x }
      }),
    ],
  ] as const)("%s", ([, layer]) =>
    Effect.gen(function* () {
      const told = yield* Testing.model(layer)
      const expected = { outputs: { y: 1 }, parameters: { language: "en", count: 3 } }
      expect(yield* told.withParameters.infer({ x: 1 })).toEqual(expected)
      expect(yield* Stream.runCollect(told.withParameters.stream({ x: 1 }))).toEqual([expected])
      expect(yield* told.infer({ x: 1 })).toEqual({ y: 1 })
    }),
  )
})

it.effect("one that contradicts the declaration fails its request with the reason", () =>
  Effect.gen(function* () {
    const wrong = Model.each(Told, ({ x }, { setParameterUnsafe }) => {
      // @ts-expect-error none of the literals
      setParameterUnsafe("language", "fr")
      return { y: x }
    })
    const strange = Model.each(Told, ({ x }, { setParameter }) =>
      // @ts-expect-error not declared
      Effect.as(setParameter("color", "red"), { y: x }),
    )
    const failure = (layer: typeof wrong) =>
      Effect.flatMap(Testing.model(layer), (told) => Effect.map(Effect.flip(told.infer({ x: 1 })), String))
    expect(yield* failure(wrong)).toMatch(/response parameter 'language': Expected "de" \| "en", got "fr"/)
    expect(yield* failure(strange)).toMatch(
      /response parameter 'color': not declared; expected one of 'at', 'language', 'count'/,
    )
  }),
)

it.effect("a request for a required parameter that the handler did not set fails", () =>
  Effect.gen(function* () {
    const told = yield* Testing.model(Model.each(Told, ({ x }) => ({ y: x })))
    expect(yield* told.infer({ x: 1 })).toEqual({ y: 1 })
    expect(yield* Effect.flip(told.withParameters.infer({ x: 1 }))).toMatchObject({
      _tag: "ExecutionFailed",
      message: "response parameter 'language' of model 'told': Missing key",
    })
  }),
)

/** Negative type tests, which `tsc` checks. */
export const callers = Effect.gen(function* () {
  const { parameters } = yield* (yield* Told).withParameters.infer({ x: 1 })
  const language: "de" | "en" = parameters.language
  // @ts-expect-error may be absent
  const count: number = parameters.count
  // @ts-expect-error not declared
  void parameters.color
  return [language, count]
})
