/** Limits of sequences, as users test them: places, backlog, expiry, size of states, and the isolation of states. */
import { expect, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Schema } from "effect"
import { Hosting } from "../instance/Hosting.ts"
import * as Model from "../Model.ts"
import * as Tensor from "../Tensor.ts"
import * as Testing from "../Testing.ts"

const shared = { inputs: { X: Tensor.scalar("INT32") }, outputs: { COUNT: Tensor.scalar("INT32") } }

class Few extends Model.Service<Few>()("few", {
  ...shared,
  sequence: { state: Schema.Int, initial: () => 0, maxSequences: 1, maxBacklog: 1, maxIdle: "5 seconds" },
}) {}

const FewLive = Model.sequence(Few, (_, { state }) => ({ outputs: { COUNT: state + 1 }, state: state + 1 }))

it.effect("a session waits for the place of another one, and the next is refused", () =>
  Effect.gen(function* () {
    const few = yield* Testing.model(FewLive)
    const [one, two, three] = yield* Effect.all([few.session(), few.session(), few.session()])
    yield* one.infer({ X: 0 })
    const waiting = yield* Effect.forkChild(two.infer({ X: 0 }), { startImmediately: true })
    yield* Testing.advance("4 seconds")
    expect(waiting.pollUnsafe()).toBeUndefined()
    const { _tag, message } = yield* Effect.flip(three.infer({ X: 0 }))
    expect(_tag).toBe("QueueFull")
    expect(message).toContain("the backlog of sequences of model 'few' has reached its limit of 1")
    expect(yield* one.end({ X: 0 })).toEqual({ COUNT: 2 })
    expect(yield* Fiber.join(waiting)).toEqual({ COUNT: 1 })
    expect(yield* few.executions).toHaveLength(3)
  }).pipe(Effect.scoped),
)

it.effect("a session that waits gets the place of one that expires", () =>
  Effect.gen(function* () {
    const few = yield* Testing.model(FewLive)
    const [one, two] = yield* Effect.all([few.session(), few.session()])
    yield* one.infer({ X: 0 })
    const waiting = yield* Effect.forkChild(two.infer({ X: 0 }), { startImmediately: true })
    yield* Testing.advance("5 seconds")
    expect(yield* Fiber.join(waiting)).toEqual({ COUNT: 1 })
    const error = yield* Effect.flip(one.infer({ X: 0 }))
    expect(error).toMatchObject({ reason: "expired", idleMillis: 5000 })
  }).pipe(Effect.scoped),
)

it.effect("each live sequence may have a request that waits", () => {
  class Many extends Model.Service<Many>()("many", { ...shared, sequence: { state: Schema.Int, initial: () => 0 } }) {}
  const ManyLive = Model.sequence(Many, (_, { state }) =>
    Effect.as(Effect.sleep("1 second"), { outputs: { COUNT: state + 1 }, state: state + 1 }),
  )
  return Effect.gen(function* () {
    const many = yield* Testing.model(ManyLive)
    const sessions = yield* Effect.all(Array.from({ length: 3000 }, () => many.session()))
    const calls = yield* Effect.forkChild(
      Effect.all(
        sessions.map((session) => session.infer({ X: 0 })),
        { concurrency: "unbounded" },
      ),
      { startImmediately: true },
    )
    yield* Testing.advance("1 hour")
    expect(new Set((yield* Fiber.join(calls)).map(({ COUNT }) => COUNT))).toEqual(new Set([1]))
  }).pipe(Effect.scoped)
})

class Text extends Model.Service<Text>()("text", {
  inputs: { MORE: Tensor.utf8() },
  outputs: { LENGTH: Tensor.scalar("INT32") },
  sequence: { state: { ALL: Tensor.utf8() }, maxStateBytes: 14 },
}) {}

it.effect("a state that is too large ends its sequence", () => {
  const TextLive = Model.sequence(Text, ({ MORE }, { state: { ALL } }) => {
    const all = ALL + MORE
    return { outputs: { LENGTH: all.length }, state: { ALL: all } }
  })
  return Effect.gen(function* () {
    const session = yield* (yield* Text).session()
    // A text has 4 bytes for its length.
    expect(yield* session.infer({ MORE: "1234567890" })).toEqual({ LENGTH: 10 })
    const { message } = yield* Effect.flip(session.infer({ MORE: "1" }))
    expect(message).toContain("has 15 bytes, which exceeds the limit of 14 bytes")
    expect(yield* Effect.flip(session.infer({ MORE: "1" }))).toMatchObject({ reason: "tooLarge" })
  }).pipe(Effect.provide(TextLive), Effect.scoped)
})

it.effect("a sequence that exceeds the limit of all states together is over, and no other one", () => {
  class Texts extends Model.Service<Texts>()("texts", {
    inputs: { MORE: Tensor.utf8() },
    outputs: { LENGTH: Tensor.scalar("INT32") },
    sequence: { state: { ALL: Tensor.utf8() }, maxTotalStateBytes: 20 },
  }) {}
  const TextsLive = Model.sequence(Texts, ({ MORE }, { state: { ALL } }) => {
    const all = ALL + MORE
    return { outputs: { LENGTH: all.length }, state: { ALL: all } }
  })
  return Effect.gen(function* () {
    const texts = yield* Texts
    const [one, two] = yield* Effect.all([texts.session(), texts.session()])
    // A text has 4 bytes for its length: 14 and 6 bytes.
    expect(yield* one.infer({ MORE: "1234567890" })).toEqual({ LENGTH: 10 })
    expect(yield* two.infer({ MORE: "12" })).toEqual({ LENGTH: 2 })
    expect((yield* Effect.flip(two.infer({ MORE: "3" })))._tag).toBe("ExecutionFailed")
    expect(yield* Effect.flip(two.infer({ MORE: "3" }))).toMatchObject({ reason: "tooLarge" })
    // The bytes of the other sequence are free again.
    expect(yield* one.infer({ MORE: "123456" })).toEqual({ LENGTH: 16 })
  }).pipe(Effect.provide(TextsLive), Effect.scoped)
})

it.effect("a sequence whose idle time is Infinity never expires", () => {
  class Lasting extends Model.Service<Lasting>()("lasting", {
    ...shared,
    sequence: { state: Schema.Int, initial: () => 0, maxIdle: Infinity },
  }) {}
  const LastingLive = Model.sequence(Lasting, (_, { state }) => ({ outputs: { COUNT: state + 1 }, state: state + 1 }))
  return Effect.gen(function* () {
    const lasting = yield* Testing.model(LastingLive)
    const session = yield* lasting.session()
    expect(yield* session.infer({ X: 0 })).toEqual({ COUNT: 1 })
    yield* Testing.advance("10000 hours")
    expect(yield* session.infer({ X: 0 })).toEqual({ COUNT: 2 })
  }).pipe(Effect.scoped)
})

it.effect("a session has its own limit of idle time, up to that of the model", () => {
  class Patient extends Model.Service<Patient>()("patient", {
    ...shared,
    sequence: { state: Schema.Int, initial: () => 0, maxIdle: "1 minute", maxIdleLimit: "1 hour" },
  }) {}
  const PatientLive = Model.sequence(Patient, (_, { state }) => ({ outputs: { COUNT: state + 1 }, state: state + 1 }))
  return Effect.gen(function* () {
    const patient = yield* Testing.model(PatientLive)
    const brief = yield* patient.session({ maxIdle: "1 second" })
    const usual = yield* patient.session()
    const long = yield* patient.session({ maxIdle: "1 hour" })
    for (const session of [brief, usual, long]) yield* session.infer({ X: 0 })
    yield* Testing.advance("1 second")
    expect(yield* Effect.flip(brief.infer({ X: 0 }))).toMatchObject({ reason: "expired", idleMillis: 1000 })
    yield* Testing.advance("59 seconds")
    expect(yield* Effect.flip(usual.infer({ X: 0 }))).toMatchObject({ reason: "expired", idleMillis: 60_000 })
    yield* Testing.advance("58 minutes")
    expect(yield* long.infer({ X: 0 })).toEqual({ COUNT: 2 })
    yield* Testing.advance("1 hour")
    expect(yield* Effect.flip(long.infer({ X: 0 }))).toMatchObject({ reason: "expired", idleMillis: 3_600_000 })
    const endless = yield* patient.session({ maxIdle: Infinity })
    const refused = yield* Effect.flip(endless.infer({ X: 0 }))
    expect(refused._tag).toBe("InvalidRequest")
    expect(refused.message).toContain("must be at most 3600000000 microseconds for model 'patient'")
  }).pipe(Effect.scoped)
})

it.effect("a model may let its callers keep a session for as long as they like, which its own limit does not", () => {
  class Endless extends Model.Service<Endless>()("endless", {
    ...shared,
    parameters: { scale: Schema.Int.pipe(Schema.withDecodingDefaultKey(Effect.succeed(1))) },
    sequence: { state: Schema.Int, initial: () => 0, maxIdleLimit: Infinity },
  }) {}
  const EndlessLive = Model.sequence(Endless, (_, { state, parameters }) => ({
    outputs: { COUNT: state + parameters.scale },
    state: state + parameters.scale,
  }))
  return Effect.gen(function* () {
    const endless = yield* Testing.model(EndlessLive)
    const [one, other] = yield* Effect.all([endless.session({ maxIdle: Infinity }), endless.session()])
    for (const session of [one, other]) yield* session.infer({ X: 0 })
    yield* Testing.advance("10000 hours")
    expect(yield* one.infer({ X: 0 })).toEqual({ COUNT: 2 })
    expect(yield* Effect.flip(other.infer({ X: 0 }))).toMatchObject({ reason: "expired" })
    expect(() => Effect.runSync(Effect.scoped(endless.session({ maxIdle: 0 })))).toThrow(
      "maxIdle of a session must be longer than 0, but 0 ms was given.",
    )
  }).pipe(Effect.scoped)
})

class Own extends Model.Service<Own>()("own", {
  inputs: { X: Tensor.scalar("INT32") },
  outputs: { SEEN: Tensor.INT32(2) },
  maxBatchSize: 4,
  batching: { maxQueueDelay: "1 second", preferredBatchSizes: [2] },
  sequence: {
    state: { SECRET: Tensor.INT32(2) },
    initial: () => ({ SECRET: Tensor.make("INT32", [2], Int32Array.of(7, 7)) }),
  },
}) {}

it.effect("no sequence sees the state of another, whatever its handler writes into it", () => {
  const OwnLive = Model.sequence(Own, ({ X }, { state: { SECRET } }) => {
    const seen = Tensor.make("INT32", [2], SECRET.data.slice())
    SECRET.data.fill(X)
    return { outputs: { SEEN: seen }, state: { SECRET } }
  })
  return Effect.gen(function* () {
    const own = yield* Own
    const [one, two] = yield* Effect.all([own.session(), own.session()])
    const both = (a: number, b: number) =>
      Effect.map(Effect.all([one.infer({ X: a }), two.infer({ X: b })], { concurrency: "unbounded" }), (all) =>
        all.map(({ SEEN }) => [...SEEN.data]),
      )
    expect(yield* both(1, 2)).toEqual([
      [7, 7],
      [7, 7],
    ])
    expect(yield* both(3, 4)).toEqual([
      [1, 1],
      [2, 2],
    ])
    const newcomer = yield* own.session()
    const waiting = yield* Effect.forkChild(newcomer.infer({ X: 9 }), { startImmediately: true })
    yield* one.infer({ X: 5 })
    expect([...(yield* Fiber.join(waiting)).SEEN.data]).toEqual([7, 7])
  }).pipe(Effect.provide(OwnLive), Effect.scoped)
})

it("wrong declarations are refused", () => {
  const declare = (sequence: object) => () =>
    Model.Service()("wrong", { inputs: { X: Tensor.scalar("INT32") }, outputs: {}, sequence })
  expect(declare({ maxIdle: 0 })).toThrow('Model "wrong": sequence.maxIdle must be longer than 0, but 0 ms was given.')
  expect(declare({ maxIdle: 2000, maxIdleLimit: 1999 })).toThrow(
    'Model "wrong": sequence.maxIdleLimit must be at least sequence.maxIdle, 2000 ms, but 1999 ms was given.',
  )
  expect(declare({ maxSequences: 0 })).toThrow("sequence.maxSequences must be an integer of at least 1")
  expect(declare({ maxBacklog: -1 })).toThrow("sequence.maxBacklog must be an integer of at least 0")
  expect(declare({ maxStateBytes: 0 })).toThrow("sequence.maxStateBytes must be an integer of at least 1")
  expect(declare({ state: { X: Tensor.scalar("INT32") } })).toThrow("state 'X' has the name of an input")
  expect(declare({ state: Schema.Int })).toThrow("sequence.initial must make the first state")
  class Wrong extends Model.Service<Wrong>()("wrong", {
    inputs: {},
    outputs: {},
    sequence: {
      state: { S: Tensor.INT32("n") },
      initial: () => ({ S: Tensor.make("INT32", [1, 1] as never, new Int32Array(1)) }),
    },
  }) {}
  expect(() => Model.sequence(Wrong, (_, { state }) => ({ outputs: {}, state }))).toThrow(
    "does not fit 'S': wrong rank",
  )
  expect(() =>
    Model.Service()("wrong", {
      inputs: {},
      outputs: {},
      maxBatchSize: 2,
      batching: { onFailure: "bisect" },
      sequence: {},
    }),
  ).toThrow('batching.onFailure must not be "bisect"')
  expect(() =>
    Model.sequence(Few, (_, { state }) => ({ outputs: { COUNT: 1 }, state }), { responseCache: true }),
  ).toThrow("a model with sequences has no responseCache")
})

it.effect("a handler in a worker thread is refused, because the main thread has the states", () => {
  const hosted = Layer.provide(
    FewLive,
    Layer.succeed(Hosting, {
      name: "few_0",
      model: "few",
      version: "1",
      group: 0,
      index: 0,
      kind: "CPU",
      gpu: undefined,
    }),
  )
  return Effect.gen(function* () {
    const exit = yield* Effect.exit(Effect.provide(Few, hosted))
    expect(String(exit)).toContain("has sequences, whose handler cannot run in a worker thread")
  })
})
