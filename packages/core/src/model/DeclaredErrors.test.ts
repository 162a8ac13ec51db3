/**
 * Declared errors in one process: which instances callers have, through models and modes. Over sockets:
 * test/errors.test.ts.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer, Result, Schema, Stream } from "effect"
import { GrpcCode } from "../grpc/GrpcCode.ts"
import { fromHeaders, tagOf } from "../wire/ErrorHeaders.ts"
import { statusOf } from "../wire/ErrorStatus.ts"
import * as Errors from "../error/InferenceError.ts"
import * as DeclaredErrors from "./DeclaredErrors.ts"
import * as Model from "../Model.ts"
import * as Tensor from "../Tensor.ts"
import * as Testing from "../Testing.ts"

class TooDark extends Schema.TaggedError<TooDark>()("TooDark", { message: Schema.String }) {}
class BadImage extends Schema.TaggedError<BadImage>()("BadImage", { reason: Schema.String, at: Schema.Date }) {}
class Other extends Schema.TaggedError<Other>()("Other", {}) {}

const fields = {
  inputs: { x: Tensor.scalar("INT32") },
  outputs: { y: Tensor.scalar("INT32") },
  maxBatchSize: 4,
} as const

class Look extends Model.Service<Look>()("look", {
  ...fields,
  errors: [TooDark, [BadImage, { http: 422, grpc: "INVALID_ARGUMENT" }]],
}) {}

/** Calls Look and declares one of its errors. */
class Outer extends Model.Service<Outer>()("outer", { ...fields, errors: [[TooDark, { http: 400 }]] }) {}

/** Calls Look, and declares no errors. */
class Free extends Model.Service<Free>()("free", fields) {}

const bad = new BadImage({ reason: "größer", at: new Date(0) })
const dark = new TooDark({ message: "too dark" })

const none = new Errors.InvalidRequest({ message: "none" })

const LookLive = Model.each(Look, ({ x }) => Effect.fail(x === 1 ? bad : x === 2 ? dark : none))

const batch = { x: Tensor.make("INT32", [1, 1], Int32Array.of(1)) }

describe("every mode fails with the very instance", () => {
  it.effect.each([
    ["each, an effect", LookLive],
    [
      "each, thrown",
      Model.each(Look, () => {
        throw bad
      }),
    ],
    ["each, a promise", Model.each(Look, () => Promise.reject(bad))],
    ["batch", Model.batch(Look, () => Effect.fail(bad))],
    ["requests", Model.requests(Look, (requests) => requests.map(() => Result.fail(bad)))],
    ["requests, all", Model.requests(Look, () => Effect.fail(bad))],
    ["stream", Model.stream(Look, () => Stream.fail(bad))],
    [
      "stream, thrown",
      Model.stream(Look, async function* () {
        throw bad
      }),
    ],
  ] as const)("%s", ([, layer]) =>
    Effect.gen(function* () {
      const look = yield* Testing.model(layer)
      expect(yield* Effect.flip(look.infer({ x: 1 }))).toBe(bad)
      expect(yield* Effect.flip(look.inferBatch(batch))).toBe(bad)
      expect(yield* Effect.flip(look.withParameters.infer({ x: 1 }))).toBe(bad)
      expect(yield* Effect.flip(Stream.runCollect(look.stream({ x: 1 })))).toBe(bad)
    }),
  )
})

it.effect("callers catch it by its tag, with its fields, in addition to general errors", () =>
  Effect.gen(function* () {
    const look = yield* Testing.model(LookLive)
    const outcomeOf = (x: number) =>
      look.infer({ x }).pipe(
        Effect.map(({ y }) => String(y)),
        Effect.catchTag("BadImage", ({ reason, at }) => Effect.succeed(`${reason} ${at.getTime()}`)),
        Effect.catchTag("TooDark", ({ message }) => Effect.succeed(message)),
        Effect.catchTag("InvalidRequest", ({ message }) => Effect.succeed(message)),
      )
    expect([yield* outcomeOf(1), yield* outcomeOf(2), yield* outcomeOf(3)]).toEqual(["größer 0", "too dark", "none"])
  }),
)

it.effect("by promises it is what they reject with", () =>
  Effect.gen(function* () {
    const look = yield* Effect.promise(() => Testing.start(LookLive))
    const failure = yield* Effect.promise(() => look.infer({ x: 1 }).catch((error: unknown) => error))
    expect(failure).toBe(bad)
    yield* Effect.promise(() => look.close())
  }),
)

describe("models that call models", () => {
  it.effect("pass on what they declare too, with their own status", () =>
    Effect.gen(function* () {
      const layer = Model.each(
        Outer,
        Effect.map(
          Look,
          (look) => (sample) => Effect.catchTag(look.infer(sample), "BadImage", () => Effect.succeed({ y: -1 })),
        ),
      )
      const outer = yield* Testing.model(layer.pipe(Layer.provide(LookLive)))
      expect(yield* outer.infer({ x: 1 })).toEqual({ y: -1 })
      expect(yield* Effect.flip(outer.infer({ x: 2 }))).toBe(dark)
    }),
  )

  it.effect("keep the tag, the status and the fields of what they know nothing of", () =>
    Effect.gen(function* () {
      const layer = Model.each(
        Free,
        Effect.map(Look, (look) => (sample) => look.infer(sample)),
      )
      const free = yield* Testing.model(layer.pipe(Layer.provide(LookLive)))
      const error = yield* Effect.flip(free.infer({ x: 1 }))
      expect(error).toBeInstanceOf(Errors.DeclaredFailure)
      expect(error).toMatchObject({ _tag: "DeclaredFailure", kind: "BadImage" })
      expect(tagOf(error)).toBe("BadImage")
      expect(statusOf(error)).toMatchObject({ http: 422, grpc: GrpcCode.INVALID_ARGUMENT })
      expect(error.message).toBe('BadImage: {"reason":"größer","at":"1970-01-01T00:00:00.000Z"}')
    }),
  )
})

it.effect("an undeclared class is an ExecutionFailed", () =>
  Effect.gen(function* () {
    const free = yield* Testing.model(
      Model.each(Free, () => Effect.fail(new BadImage({ reason: "", at: new Date(0) }))),
    )
    const error = yield* Effect.flip(free.infer({ x: 1 }))
    expect(error).not.toBeInstanceOf(Errors.DeclaredFailure)
    expect(error.message).toBe("Failed to process the request(s) for model 'free_0', message: BadImage")
  }),
)

describe("values sent over the wire", () => {
  const errors = DeclaredErrors.make("look", [TooDark, [BadImage, { http: 422, grpc: "INVALID_ARGUMENT" }]])
  const sent = errors.encode(bad)

  /** A failure as a client makes it of header fields. */
  const received = (kind: string, document: string) =>
    fromHeaders(
      { tag: kind, document, retryAfter: undefined },
      new Errors.ExecutionFailed({ message: `${kind}: text` }),
      { http: 422 },
    )

  it("is an instance of the class again", () => {
    expect(sent?.document).toMatch(/^[ -~]*$/)
    const error = errors.decode(received("BadImage", sent?.document ?? ""))
    expect(error).toBeInstanceOf(BadImage)
    expect(error).toMatchObject({ _tag: "BadImage", reason: "größer", at: new Date(0) })
    // A handler that does not know the class passes it on as it came.
    expect(DeclaredErrors.originOf(error)).toMatchObject({ kind: "BadImage", document: sent?.document })
  })

  it.each([
    ["no JSON", "{"],
    ["another type", '{"_tag":"BadImage","reason":1,"at":"1970-01-01T00:00:00.000Z"}'],
    ["a field that is missing", '{"_tag":"BadImage"}'],
    ["another tag", '{"_tag":"TooDark","message":"x"}'],
    ["no object", "null"],
    ["nothing", ""],
    ["a date that is none", '{"_tag":"BadImage","reason":"x","at":"never"}'],
  ])("%s: it stays an ExecutionFailed, with its text", (_, document) => {
    const failure = received("BadImage", document)
    expect(errors.decode(failure)).toBe(failure)
    expect(failure).toMatchObject({ _tag: "DeclaredFailure", message: "BadImage: text", kind: "BadImage" })
  })

  it("with a tag that is not declared, or a general one, it is what it was", () => {
    const unknown = received("Strange", "{}")
    expect(errors.decode(unknown)).toBe(unknown)
    expect(received("QueueFull", "{}")).toBeInstanceOf(Errors.QueueFull)
  })

  it.each([
    ["a document that is too long", "BadImage", `{"_tag":"BadImage","reason":"${"x".repeat(5000)}"}`],
    ["a document that is no header field", "BadImage", '{"reason":"größer"}'],
    ["a tag that is no header field", "größer", "{}"],
    ["a tag that is too long", "x".repeat(257), "{}"],
  ])("%s is taken for nothing, and so never passed on", (_, kind, document) => {
    const failure = received(kind, document)
    expect(failure).toEqual(new Errors.ExecutionFailed({ message: `${kind}: text` }))
    expect(failure).not.toBeInstanceOf(Errors.DeclaredFailure)
  })

  it("an instance of more than 4 KiB travels without its fields", () => {
    const failure = errors.encode(new TooDark({ message: "x".repeat(5000) }))
    expect(failure?.document).toBeUndefined()
    expect(failure?.message).toBe(`TooDark: ${"x".repeat(5000)}`)
  })
})

it.each<[string, () => unknown, string]>([
  ["a tag of Errors", () => named("QueueFull"), 'the tag "QueueFull" of an error is already in use'],
  [
    "one tag twice",
    () => DeclaredErrors.make("m", [BadImage, BadImage]),
    'the tag "BadImage" of an error is already in use',
  ],
  ["no HTTP status of a failure", () => DeclaredErrors.make("m", [[BadImage, { http: 200 }]]), "must be 400 to 599"],
  ["a tag that is no header field", () => named("größer"), "with a tag of printable ASCII"],
])("%s is refused when the model is declared", (_, declare, problem) => {
  expect(declare).toThrow(TypeError)
  expect(declare).toThrow(problem)
})

const named = (tag: string) => {
  class Named extends Schema.TaggedError<Named>()(tag, {}) {}
  return DeclaredErrors.make("m", [Named])
}

const callLook = Effect.map(Look, (look) => (sample: Model.Sample<typeof fields.inputs>) => look.infer(sample))

/** Negative type tests, which `tsc` checks. */
// @effect-diagnostics missingEffectError:off
export const handlers = [
  Model.each(Look, () => Effect.fail(new Errors.QueueFull({ message: "" }))),
  // @ts-expect-error not declared
  Model.each(Look, () => Effect.fail(new Other())),
  // @ts-expect-error not declared
  Model.batch(Look, () => Effect.fail(new Other())),
  // @ts-expect-error not declared
  Model.requests(Look, (requests) => requests.map(() => Result.fail(new Other()))),
  // @ts-expect-error not declared
  Model.stream(Look, () => Stream.fail(new Other())),
  // @ts-expect-error an error of the called model is neither caught nor declared
  Model.each(Outer, callLook),
  // Where none are declared, any may be.
  Model.each(Free, () => Effect.fail(new Other())),
]

export const callers = Effect.gen(function* () {
  const [look, free] = [yield* Look, yield* Free]
  const caught: Effect.Effect<unknown, Errors.InferenceError | TooDark> = Effect.catchTag(
    look.infer({ x: 1 }),
    "BadImage",
    () => Effect.void,
  )
  // @ts-expect-error not declared
  const uncaught: Effect.Effect<unknown, Errors.InferenceError> = look.infer({ x: 1 })
  // @ts-expect-error no error of this model
  Effect.catchTag(free.infer({ x: 1 }), "BadImage", () => Effect.void)
  const general: Effect.Effect<unknown, Errors.InferenceError> = free.infer({ x: 1 })
  return [caught, uncaught, general]
})

export const refused = () => {
  class Odd extends Model.Service<Odd>()("odd", {
    ...fields,
    // @ts-expect-error no class of Schema.TaggedError
    errors: [TypeError],
  }) {}
  class Coded extends Model.Service<Coded>()("coded", {
    ...fields,
    // @ts-expect-error no code of gRPC
    errors: [[BadImage, { grpc: "BAD" }]],
  }) {}
  return [Odd, Coded]
}
