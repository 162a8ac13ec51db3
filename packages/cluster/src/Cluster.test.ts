import { expect, it } from "@effect/vitest"
import { Context, Effect, Fiber, Layer, Schema, Stream } from "effect"
import * as MessageStorage from "effect/cluster/MessageStorage"
import * as RunnerHealth from "effect/cluster/RunnerHealth"
import * as Runners from "effect/cluster/Runners"
import * as RunnerStorage from "effect/cluster/RunnerStorage"
import * as Sharding from "effect/cluster/Sharding"
import * as ShardingConfig from "effect/cluster/ShardingConfig"
import * as TestRunner from "effect/cluster/TestRunner"
import { TestClock } from "effect/testing"
import { describe } from "vitest"
import { Errors, Model, Tensor } from "@nereid/core"
import { Cluster, SequenceStore } from "./index.ts"
import { Sums, SumsLive } from "./Sums.fixture.ts"

const runner = Layer.merge(TestRunner.layer, SequenceStore.layerMemory)

/** A single runner with settings of the sharding. */
const runnerWith = (config: Partial<ShardingConfig.ShardingConfig["Service"]>) =>
  Sharding.layer.pipe(
    Layer.provide(Runners.layerNoop),
    Layer.provide([MessageStorage.layerNoop, RunnerStorage.layerMemory, RunnerHealth.layerNoop]),
    Layer.provide(ShardingConfig.layer(config)),
    Layer.merge(SequenceStore.layerMemory),
  )

const live = Cluster.layer(Sums, SumsLive).pipe(Layer.provide(Layer.fresh(runner)))

/** Runs an effect, for which the cluster needs time. */
const timePasses = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.gen(function* () {
    const fiber = yield* Effect.forkChild(effect)
    while (fiber.pollUnsafe() === undefined) yield* TestClock.adjust("100 millis")
    return yield* Fiber.join(fiber)
  })

describe("a sequence model in a cluster of one runner", () => {
  it.live("keeps the state of each session", () =>
    Effect.gen(function* () {
      const sums = yield* Sums
      const one = yield* sums.session()
      const other = yield* sums.session({ id: "other" })
      expect(yield* one.infer({ VALUE: 1 })).toEqual({ TOTAL: 1 })
      expect(yield* other.infer({ VALUE: 10 })).toEqual({ TOTAL: 10 })
      expect(yield* one.infer({ VALUE: 2 })).toEqual({ TOTAL: 3 })
      expect(yield* one.end({ VALUE: 3 })).toEqual({ TOTAL: 6 })
      expect(yield* Effect.flip(one.infer({ VALUE: 4 }))).toMatchObject({ _tag: "SequenceNotFound", reason: "ended" })
    }).pipe(Effect.scoped, Effect.provide(live)),
  )

  it.effect("expires idle sequences as the local model does", () =>
    Effect.gen(function* () {
      const session = yield* (yield* Sums).session()
      yield* timePasses(session.infer({ VALUE: 1 }))
      yield* TestClock.adjust("30 seconds")
      const error = yield* timePasses(Effect.flip(session.infer({ VALUE: 2 })))
      expect(error).toMatchObject({ _tag: "SequenceNotFound", reason: "expired", idleMillis: 30_000 })
    }).pipe(Effect.scoped, Effect.provide(live)),
  )

  it.live("ends a sequence with the scope of its session", () =>
    Effect.gen(function* () {
      const sums = yield* Sums
      const first = Effect.flatMap(sums.session({ id: 5n }), (session) => session.infer({ VALUE: 1 }))
      yield* Effect.scoped(first)
      while (sums.model.life.activity().sequences?.live !== 0) yield* Effect.yieldNow
      expect(yield* Effect.scoped(first)).toEqual({ TOTAL: 1 })
    }).pipe(Effect.provide(live)),
  )

  it.live("is called by a program that executes none of it", () =>
    Effect.gen(function* () {
      const context = yield* Layer.build(Cluster.client(Sums))
      const session = yield* Context.get(context, Sums).session()
      expect(yield* session.infer({ VALUE: 2 })).toEqual({ TOTAL: 2 })
    }).pipe(Effect.scoped, Effect.provide(Layer.provideMerge(Cluster.layer(Sums, SumsLive), Layer.fresh(runner)))),
  )
})

class TooLarge extends Schema.TaggedError<TooLarge>()("TooLarge", { limit: Schema.Number }, { httpApiStatus: 422 }) {}

class Steps extends Model.Service<Steps>()("steps", {
  inputs: { COUNT: Tensor.scalar("INT32") },
  outputs: { STEP: Tensor.scalar("INT32") },
  errors: [TooLarge],
  sequence: { state: { LAST: Tensor.scalar("INT32") } },
}) {}

const StepsLive = Model.sequenceStream(Steps, ({ COUNT }, { state: { LAST } }) =>
  COUNT > 100
    ? Stream.fail(new TooLarge({ limit: 100 }))
    : Stream.fromIterable([
        ...Array.from({ length: COUNT }, (_, step) => ({ outputs: { STEP: LAST + step + 1 } })),
        { state: { LAST: LAST + COUNT } },
      ]),
)

describe("a sequence model that streams, in a cluster", () => {
  const steps = Cluster.layer(Steps, StepsLive).pipe(Layer.provide(Layer.fresh(runner)))

  it.live("gives any number of responses, and keeps its state", () =>
    Effect.gen(function* () {
      const session = yield* (yield* Steps).session()
      const all = (COUNT: number) => Effect.map(Stream.runCollect(session.stream({ COUNT })), (steps) => [...steps])
      expect(yield* all(2)).toEqual([{ STEP: 1 }, { STEP: 2 }])
      expect(yield* all(0)).toEqual([])
      expect((yield* all(50)).at(-1)).toEqual({ STEP: 52 })
    }).pipe(Effect.scoped, Effect.provide(steps)),
  )

  it.live("fails with the errors that the model declares", () =>
    Effect.gen(function* () {
      const session = yield* (yield* Steps).session()
      const error = yield* Effect.flip(Stream.runDrain(session.stream({ COUNT: 101 })))
      expect(error).toBeInstanceOf(TooLarge)
      expect(error).toMatchObject({ limit: 100 })
    }).pipe(Effect.scoped, Effect.provide(steps)),
  )
})

describe("limits", () => {
  it.live("calls of one part wait up to the capacity of its mailbox", () =>
    Effect.gen(function* () {
      const sums = yield* Sums
      // The same part, because the id is the same.
      const sessions = yield* Effect.all(Array.from({ length: 3 }, () => sums.session({ id: 5n })))
      const calls = Effect.forEach(sessions, (session) => Effect.result(session.infer({ VALUE: 0.5 })), {
        concurrency: "unbounded",
      })
      const failures = (yield* calls).flatMap((result) => (result._tag === "Failure" ? [result.failure] : []))
      expect(failures).toMatchObject([{ _tag: "QueueFull" }])
    }).pipe(
      Effect.scoped,
      Effect.provide(Cluster.layer(Sums, SumsLive, { mailboxCapacity: 2 }).pipe(Layer.provide(Layer.fresh(runner)))),
    ),
  )

  it.live("calls in flight", () =>
    Effect.gen(function* () {
      const sums = yield* Sums
      const sessions = yield* Effect.all([sums.session(), sums.session()])
      const calls = Effect.forEach(sessions, (session) => Effect.result(session.infer({ VALUE: 1 })), {
        concurrency: "unbounded",
      })
      const results = yield* calls
      expect(results[1]).toMatchObject({ _tag: "Failure", failure: { _tag: "QueueFull" } })
    }).pipe(
      Effect.scoped,
      Effect.provide(Cluster.layer(Sums, SumsLive, { maxInFlight: 1 }).pipe(Layer.provide(Layer.fresh(runner)))),
    ),
  )

  it.live("a call waits for a runner until its timeout", () =>
    Effect.gen(function* () {
      const session = yield* (yield* Sums).session()
      expect(yield* Effect.flip(session.infer({ VALUE: 1 }))).toMatchObject({ _tag: "DeadlineExceeded" })
      const timeout = { timeout: "20 millis" } as const
      expect(yield* Effect.flip(session.infer({ VALUE: 1 }, timeout))).toMatchObject({ _tag: "DeadlineExceeded" })
    }).pipe(
      Effect.scoped,
      // Nobody runs the model.
      Effect.provide(
        Cluster.client(Sums, { timeout: "50 millis" }).pipe(
          Layer.provide(runnerWith({ entityRegistrationTimeout: "1 minute" })),
        ),
      ),
    ),
  )

  it("of options are checked", () => {
    expect(() => Cluster.client(Sums, { timeout: 0 })).toThrow(/timeout must be positive, but 0 was given/)
    expect(() => Cluster.client(Sums, { maxInFlight: 0 })).toThrow(TypeError)
    expect(() => Cluster.layer(Sums, SumsLive, { mailboxCapacity: 1.5 })).toThrow(TypeError)
  })
})

class Texts extends Model.Service<Texts>()("texts", {
  inputs: { TEXT: Tensor.utf8() },
  outputs: { ALL: Tensor.utf8() },
  sequence: { state: Schema.String, initial: () => "" },
}) {}

const TextsLive = Model.sequence(Texts, ({ TEXT }, { state }) => ({
  outputs: { ALL: state + TEXT },
  state: state + TEXT,
}))

it.live("a model whose state is not in tensors is refused, because its sequences could not move", () =>
  Effect.gen(function* () {
    const error = yield* Effect.flip(Layer.build(Cluster.layer(Texts, TextsLive).pipe(Layer.provide(runner))))
    expect(error).toBeInstanceOf(Errors.Unsupported)
    expect(error.message).toContain("declares no state tensors")
  }).pipe(Effect.scoped),
)

class Plain extends Model.Service<Plain>()("plain", {
  inputs: { VALUE: Tensor.scalar("FP32") },
  outputs: { TOTAL: Tensor.scalar("FP32") },
}) {}

it("only models with sequences are accepted", () => {
  const local = Model.each(Plain, ({ VALUE }) => ({ TOTAL: VALUE }))
  // @ts-expect-error: it has no sequence
  void (() => Cluster.layer(Plain, local))
  // @ts-expect-error: it has no sequence
  void (() => Cluster.client(Plain))
})
