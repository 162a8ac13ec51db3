import { expect, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import * as Errors from "../Errors.ts"
import * as Model from "../Model.ts"
import * as Tensor from "../Tensor.ts"

class Sums extends Model.Service<Sums>()("sums", {
  inputs: { VALUE: Tensor.scalar("INT32") },
  outputs: { TOTAL: Tensor.scalar("INT32") },
  maxBatchSize: 8,
  sequence: { state: { SUM: Tensor.scalar("INT32") }, maxIdle: "10 seconds" },
}) {}

const SumsLive = Model.sequence(Sums, ({ VALUE }, { state: { SUM } }) => {
  if (VALUE < 0) throw new Errors.InvalidRequest({ message: "no negative values" })
  return { outputs: { TOTAL: SUM + VALUE }, state: { SUM: SUM + VALUE } }
})

class Names extends Model.Service<Names>()("names", {
  inputs: { NAME: Tensor.utf8() },
  outputs: { ALL: Tensor.utf8() },
  sequence: { state: Schema.Array(Schema.String), initial: () => [] },
}) {}

const NamesLive = Model.sequence(Names, ({ NAME }, { state, sequence: { isStart, isEnd } }) => {
  const names = [...state, NAME]
  return Promise.resolve({
    outputs: { ALL: `${isStart ? "^" : ""}${names.join(" ")}${isEnd ? "$" : ""}` },
    state: names,
  })
})

it.effect("a session adds up its requests, and another one has its own sum", () =>
  Effect.gen(function* () {
    const sums = yield* Sums
    const one = yield* sums.session()
    const other = yield* sums.session()
    expect(yield* one.infer({ VALUE: 1 })).toEqual({ TOTAL: 1 })
    expect(yield* other.infer({ VALUE: 10 })).toEqual({ TOTAL: 10 })
    expect(yield* one.infer({ VALUE: 2 })).toEqual({ TOTAL: 3 })
    expect(yield* other.infer({ VALUE: 20 })).toEqual({ TOTAL: 30 })
  }).pipe(Effect.provide(SumsLive), Effect.scoped),
)

it.effect("a request that fails keeps the state", () =>
  Effect.gen(function* () {
    const session = yield* (yield* Sums).session()
    yield* session.infer({ VALUE: 1 })
    const { message } = yield* Effect.flip(session.infer({ VALUE: -1 }))
    expect(message).toBe("no negative values")
    expect(yield* session.infer({ VALUE: 2 })).toEqual({ TOTAL: 3 })
  }).pipe(Effect.provide(SumsLive), Effect.scoped),
)

it.effect("a handler learns of the first and the last request", () =>
  Effect.gen(function* () {
    const session = yield* (yield* Names).session()
    expect(yield* session.infer({ NAME: "a" })).toEqual({ ALL: "^a" })
    expect(yield* session.infer({ NAME: "b" })).toEqual({ ALL: "a b" })
    expect(yield* session.end({ NAME: "c" })).toEqual({ ALL: "a b c$" })
    const error = yield* Effect.flip(session.infer({ NAME: "d" }))
    expect(error).toMatchObject({ _tag: "SequenceNotFound", reason: "ended" })
  }).pipe(Effect.provide(NamesLive), Effect.scoped),
)

it.effect("requests of a session keep their order when they are sent together", () =>
  Effect.gen(function* () {
    const session = yield* (yield* Names).session()
    const fibers: Array<Fiber.Fiber<{ readonly ALL: string }, Errors.InferenceError>> = []
    for (const NAME of ["a", "b", "c", "d"]) {
      fibers.push(yield* Effect.forkChild(session.infer({ NAME }), { startImmediately: true }))
    }
    const answers = yield* Effect.forEach(fibers, Fiber.join)
    expect(answers.map(({ ALL }) => ALL)).toEqual(["^a", "a b", "a b c", "a b c d"])
  }).pipe(Effect.provide(NamesLive), Effect.scoped),
)

it.effect("a closed session ends its sequence", () =>
  Effect.gen(function* () {
    const names = yield* Names
    yield* Effect.scoped(Effect.flatMap(names.session({ id: "mine" }), (session) => session.infer({ NAME: "a" })))
    const { ALL } = yield* Effect.scoped(
      Effect.flatMap(names.session({ id: "mine" }), (session) => session.infer({ NAME: "b" })),
    )
    expect(ALL).toBe("^b")
    const { sequencing } = names.model.description
    expect(sequencing?.strategy._tag).toBe("free")
  }).pipe(Effect.provide(NamesLive)),
)

it.effect("an idle session expires, and its error says for how long it was idle", () =>
  Effect.gen(function* () {
    const session = yield* (yield* Sums).session()
    yield* session.infer({ VALUE: 1 })
    yield* TestClock.adjust("9 seconds")
    yield* session.infer({ VALUE: 2 })
    yield* TestClock.adjust("10 seconds")
    const error = yield* Effect.flip(session.infer({ VALUE: 3 }))
    expect(error).toMatchObject({ _tag: "SequenceNotFound", reason: "expired", idleMillis: 10_000 })
    expect(yield* Effect.flip(session.infer({ VALUE: 3 }))).toBe(error)
  }).pipe(Effect.provide(SumsLive), Effect.scoped),
)

it.effect("a state that does not match its Schema fails its request", () => {
  const Wrong = Model.sequence(Names, ({ NAME }, { state }) => ({
    outputs: { ALL: [...state, NAME].join(" ") },
    state: NAME === "bad" ? [1 as never] : [...state, NAME],
  }))
  return Effect.gen(function* () {
    const session = yield* (yield* Names).session()
    yield* session.infer({ NAME: "a" })
    const { message } = yield* Effect.flip(session.infer({ NAME: "bad" }))
    expect(message).toContain("returned a state that does not match its Schema")
    expect(yield* session.infer({ NAME: "b" })).toEqual({ ALL: "a b" })
  }).pipe(Effect.provide(Wrong), Effect.scoped)
})

it.effect("requests with Triton's parameters and requests of a session are the same sequence", () =>
  Effect.gen(function* () {
    const sums = yield* Sums
    const session = yield* sums.session({ id: 7n })
    yield* session.infer({ VALUE: 1 })
    const response = yield* Effect.callback<ReadonlyArray<unknown>, Errors.InferenceError>((resume) => {
      sums.model.calls.submit(
        {
          id: "",
          inputs: [Tensor.make("INT32", [1, 1], Int32Array.of(5))],
          rows: 1,
          parameters: { sequence_id: 7n },
          deadline: undefined,
        },
        (outcome) =>
          resume(
            outcome._tag === "Success"
              ? Effect.succeed(outcome.success.outputs.map((tensor) => [...(tensor?.bytes ?? [])]))
              : Effect.fail(outcome.failure),
          ),
      )
    })
    expect(response).toEqual([[6, 0, 0, 0]])
    expect(yield* session.infer({ VALUE: 1 })).toEqual({ TOTAL: 7 })
  }).pipe(Effect.provide(SumsLive), Effect.scoped),
)

class Deltas extends Model.Service<Deltas>()("deltas", {
  inputs: { X: Tensor.FP32(2) },
  outputs: { Y: Tensor.FP32(2) },
  maxBatchSize: 4,
  batching: { maxQueueDelay: "1 second", preferredBatchSizes: [2] },
  sequence: { state: { LAST: Tensor.FP32(2) } },
}) {}

it.effect("rows of different sequences share a batch with their states", () => {
  const batches: Array<number> = []
  const DeltasLive = Model.sequenceBatch(Deltas, ({ X }, { state: { LAST }, sequences }) => {
    batches.push(sequences.length)
    const y = X.data.map((value, index) => value - (LAST.data[index] ?? 0))
    return { outputs: { Y: Tensor.make("FP32", X.shape, y) }, state: { LAST: X } }
  })
  const x = (...values: [number, number]) => Tensor.make("FP32", [2], Float32Array.of(...values))
  return Effect.gen(function* () {
    const deltas = yield* Deltas
    const one = yield* deltas.session()
    const other = yield* deltas.session()
    const both = (a: [number, number], b: [number, number]) =>
      Effect.all([one.infer({ X: x(...a) }), other.infer({ X: x(...b) })], { concurrency: "unbounded" })
    yield* both([1, 2], [10, 20])
    const [{ Y: y1 }, { Y: y2 }] = yield* both([2, 4], [11, 22])
    expect([[...y1.data], [...y2.data]]).toEqual([
      [1, 2],
      [1, 2],
    ])
    const newcomer = yield* deltas.session()
    yield* Effect.all([one.infer({ X: x(3, 3) }), newcomer.infer({ X: x(0, 0) })], { concurrency: "unbounded" })
    expect(batches).toEqual([2, 2, 2])
  }).pipe(Effect.provide(DeltasLive), Effect.scoped)
})

it.effect("a batch handler gets the values of its sequences as a list", () => {
  class Counts extends Model.Service<Counts>()("counts", {
    inputs: { X: Tensor.scalar("INT32") },
    outputs: { COUNT: Tensor.scalar("INT32") },
    maxBatchSize: 4,
    batching: { maxQueueDelay: "1 second", preferredBatchSizes: [2] },
    sequence: { state: Schema.Int, initial: () => 0 },
  }) {}
  const CountsLive = Model.sequenceBatch(Counts, (_, { state }) => {
    const counts = state.map((count) => count + 1)
    return { outputs: { COUNT: Tensor.make("INT32", [counts.length, 1], Int32Array.from(counts)) }, state: counts }
  })
  return Effect.gen(function* () {
    const counts = yield* Counts
    const one = yield* counts.session()
    const other = yield* counts.session()
    const both = Effect.all([one.infer({ X: 0 }), other.infer({ X: 0 })], { concurrency: "unbounded" })
    expect(yield* both).toEqual([{ COUNT: 1 }, { COUNT: 1 }])
    expect(yield* both).toEqual([{ COUNT: 2 }, { COUNT: 2 }])
  }).pipe(Effect.provide(CountsLive), Effect.scoped)
})

class Words extends Model.Service<Words>()("words", {
  inputs: { TEXT: Tensor.utf8() },
  outputs: { WORD: Tensor.utf8() },
  sequence: { state: { REST: Tensor.utf8() } },
}) {}

const WordsLive = Model.sequenceStream(Words, function* ({ TEXT }, { state: { REST } }) {
  const words = `${REST}${TEXT}`.split(" ")
  const rest = words.pop() ?? ""
  for (const WORD of words) yield { outputs: { WORD } }
  if (rest === "fail") throw new Error("cannot go on")
  yield { state: { REST: rest } }
})

it.effect("a stream keeps the last state, and none if it fails", () =>
  Effect.gen(function* () {
    const session = yield* (yield* Words).session()
    const words = (TEXT: string) =>
      Effect.map(Stream.runCollect(session.stream({ TEXT })), (all) => all.map(({ WORD }) => WORD))
    expect(yield* words("one tw")).toEqual(["one"])
    expect(Exit.isFailure(yield* Effect.exit(words("x fail")))).toBe(true)
    expect(yield* words("o three four")).toEqual(["two", "three"])
  }).pipe(Effect.provide(WordsLive), Effect.scoped),
)
