/** Models that call models: properties that inner calls inherit from their request, and the detection of cycles. */
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Result, Stream } from "effect"
import { TestClock } from "effect/testing"
import { InvalidRequest, QueueFull } from "../error/InferenceError.ts"
import * as Model from "../Model.ts"
import { Registry } from "../lifecycle/Registry.ts"
import { RequestContext } from "../handler/RequestContext.ts"
import * as Tensor from "../Tensor.ts"
import * as Testing from "../Testing.ts"

const numbers = {
  inputs: { x: Tensor.scalar("INT32") },
  outputs: { y: Tensor.scalar("INT32") },
  maxBatchSize: 8,
} as const

class Inner extends Model.Service<Inner>()("inner", numbers) {}
class Other extends Model.Service<Other>()("other", numbers) {}
class Outer extends Model.Service<Outer>()("outer", numbers) {}
class Counting extends Model.Service<Counting>()("counting", {
  inputs: { TO: Tensor.scalar("INT32") },
  outputs: { N: Tensor.scalar("INT32") },
  maxBatchSize: 4,
}) {}

const DoubleLive = Model.each(Inner, ({ x }) => ({ y: x * 2 }))
const NegativeLive = Model.each(Other, ({ x }) => ({ y: -x }))
const AskingLive = Model.each(
  Outer,
  Effect.map(
    Inner,
    (inner) =>
      ({ x }) =>
        Effect.map(inner.infer({ x }), ({ y }) => ({ y: y + 1 })),
  ),
)

/** A handler that never answers, and says what becomes of it. */
const waiting = Effect.gen(function* () {
  const begun = yield* Deferred.make<{ readonly deadline: number | undefined; readonly id: string }>()
  const ended = yield* Deferred.make<void>()
  const layer = Model.each(Inner, () =>
    Effect.gen(function* () {
      const { deadline, id } = yield* RequestContext
      yield* Deferred.succeed(begun, { deadline, id })
      return yield* Effect.never
    }).pipe(Effect.onInterrupt(() => Deferred.succeed(ended, undefined))),
  )
  return { begun, ended, layer }
})

describe("as effects", () => {
  it.effect("the inner calls of concurrent requests share batches of the inner model", () =>
    Effect.gen(function* () {
      const outer = yield* Testing.model(AskingLive.pipe(Layer.provideMerge(DoubleLive)), Outer)
      const asked = [1, 2, 3, 4, 5, 6, 7, 8].map((x) => outer.infer({ x }))
      expect(yield* Effect.all(asked, { concurrency: "unbounded" })).toEqual(
        [3, 5, 7, 9, 11, 13, 15, 17].map((y) => ({ y })),
      )
      expect(yield* outer.executionsOf(Inner)).toEqual([{ rows: 8, requests: 8 }])
    }),
  )

  it.effect("calls of several models go on at the same time", () =>
    Effect.gen(function* () {
      const slow = ({ x }: { readonly x: number }) => Effect.delay(Effect.succeed({ y: x }), "200 millis")
      const both = Model.each(
        Outer,
        Effect.gen(function* () {
          const [inner, other] = [yield* Inner, yield* Other]
          return Effect.fnUntraced(function* ({ x }) {
            const [one, two] = yield* Effect.all([inner.infer({ x }), other.infer({ x })], { concurrency: 2 })
            return { y: one.y + two.y }
          })
        }),
      )
      const outer = yield* Testing.model(both.pipe(Layer.provide([Model.each(Inner, slow), Model.each(Other, slow)])))
      const answer = yield* Effect.forkChild(outer.infer({ x: 1 }), { startImmediately: true })
      yield* TestClock.adjust("200 millis")
      expect(yield* Fiber.join(answer)).toEqual({ y: 2 })
    }),
  )

  it.effect("the way that a request does not take leaves its model idle", () =>
    Effect.gen(function* () {
      const route = Model.each(
        Outer,
        Effect.gen(function* () {
          const [inner, other] = [yield* Inner, yield* Other]
          return ({ x }) => (x > 0 ? inner.infer({ x }) : other.infer({ x }))
        }),
      )
      const outer = yield* Testing.model(route.pipe(Layer.provideMerge(Layer.merge(DoubleLive, NegativeLive))), Outer)
      expect(yield* outer.infer({ x: 3 })).toEqual({ y: 6 })
      expect(yield* outer.executionsOf(Other)).toEqual([])
      expect(yield* outer.infer({ x: -3 })).toEqual({ y: 3 })
      expect(yield* outer.executionsOf(Inner)).toHaveLength(1)
    }),
  )

  it.effect("errors of an inner model keep their tag and text, also through two models", () =>
    Effect.gen(function* () {
      const failing = Model.each(Inner, ({ x }) =>
        Effect.fail(x > 0 ? new QueueFull({ message: "no room" }) : new InvalidRequest({ message: "not positive" })),
      )
      const third = Model.each(
        Other,
        Effect.map(
          Outer,
          (outer) =>
            ({ x }) =>
              outer.infer({ x }),
        ),
      )
      const other = yield* Testing.model(third.pipe(Layer.provide(AskingLive), Layer.provide(failing)))
      expect(yield* Effect.flip(other.infer({ x: 1 }))).toEqual(new QueueFull({ message: "no room" }))
      expect(yield* Effect.flip(other.infer({ x: 0 }))).toEqual(new InvalidRequest({ message: "not positive" }))
    }),
  )

  it.effect("the deadline of a request is that of the calls it makes, unless they have an earlier one", () =>
    Effect.gen(function* () {
      const seen: Array<number | undefined> = []
      const inner = Model.each(Inner, ({ x }, { deadline }) => {
        seen.push(deadline)
        return { y: x }
      })
      const twice = Model.each(
        Outer,
        Effect.map(
          Inner,
          (inner) =>
            ({ x }) =>
              Effect.andThen(inner.infer({ x }, { timeout: "1 second" }), inner.infer({ x }, { timeout: "1 hour" })),
        ),
      )
      const outer = yield* Testing.model(twice.pipe(Layer.provide(inner)))
      yield* outer.infer({ x: 1 }, { timeout: "1 minute" })
      yield* outer.infer({ x: 1 })
      expect(seen).toEqual([1_000, 60_000, 1_000, 3_600_000])
    }),
  )

  it.effect("an inner request has the id of the outer one, and ends with its deadline", () =>
    Effect.gen(function* () {
      const { begun, ended, layer } = yield* waiting
      const outer = yield* Testing.model(AskingLive.pipe(Layer.provide(layer)))
      const answer = yield* Effect.forkChild(Effect.flip(outer.infer({ x: 1 }, { id: "7", timeout: "1 second" })))
      expect(yield* Deferred.await(begun)).toEqual({ deadline: 1_000, id: "7" })
      yield* TestClock.adjust("1 second")
      expect(yield* Fiber.join(answer)).toMatchObject({ _tag: "DeadlineExceeded" })
      yield* Deferred.await(ended)
    }),
  )

  it.effect("a caller that leaves takes the inner requests back", () =>
    Effect.gen(function* () {
      const { begun, ended, layer } = yield* waiting
      const outer = yield* Testing.model(AskingLive.pipe(Layer.provide(layer)))
      const answer = yield* Effect.forkChild(outer.infer({ x: 1 }))
      yield* Deferred.await(begun)
      yield* Fiber.interrupt(answer)
      yield* Deferred.await(ended)
    }),
  )

  it.effect("a whole batch has the last deadline of its requests, and none where one of them has none", () =>
    Effect.gen(function* () {
      const seen: Array<number | undefined> = []
      const inner = Model.batch(Inner, ({ x }, { requests }) => {
        seen.push(...requests.map(({ deadline }) => deadline))
        return { y: x }
      })
      const whole = Model.batch(
        Outer,
        Effect.map(
          Inner,
          (inner) =>
            ({ x }) =>
              inner.inferBatch({ x }),
        ),
      )
      const outer = yield* Testing.model(whole.pipe(Layer.provide(inner)))
      const ask = (timeouts: ReadonlyArray<number | undefined>) =>
        Effect.forEach(timeouts, (timeout) => outer.infer({ x: 1 }, timeout === undefined ? {} : { timeout }), {
          concurrency: "unbounded",
        })
      yield* ask([1_000, 5_000])
      yield* ask([1_000, undefined])
      expect(seen).toEqual([5_000, undefined])
    }),
  )
})

describe("a decoupled model in a model", () => {
  /** Counts, and says how far it has come. */
  const counting = (reached: Array<number>, ended: Deferred.Deferred<void>) =>
    Model.stream(Counting, ({ TO }) =>
      Stream.range(1, TO).pipe(
        Stream.rechunk(1),
        Stream.tap((N) => Effect.sync(() => reached.push(N))),
        Stream.map((N) => ({ N })),
        Stream.ensuring(Deferred.succeed(ended, undefined)),
      ),
    )

  class Sums extends Model.Service<Sums>()("sums", {
    inputs: { TO: Tensor.scalar("INT32") },
    outputs: { SUM: Tensor.scalar("INT32") },
  }) {}

  it.effect("is a stream, which another one may be made of: a slow reader slows both, one that leaves stops both", () =>
    Effect.gen(function* () {
      const reached: Array<number> = []
      const ended = yield* Deferred.make<void>()
      const sums = Model.stream(
        Sums,
        Effect.map(
          Counting,
          (counting) =>
            ({ TO }) =>
              Stream.scan(
                counting.stream({ TO }),
                () => ({ SUM: 0 }),
                ({ SUM }, { N }) => ({ SUM: SUM + N }),
              ),
        ),
      )
      const outer = yield* Testing.model(sums.pipe(Layer.provide(counting(reached, ended))))
      const first = yield* Stream.runCollect(Stream.take(outer.stream({ TO: 100_000 }), 4))
      expect(first).toEqual([{ SUM: 0 }, { SUM: 1 }, { SUM: 3 }, { SUM: 6 }])
      yield* Deferred.await(ended)
      expect(reached.length).toBeLessThan(100)
    }),
  )

  it.effect("may be all that an answer is made of", () =>
    Effect.gen(function* () {
      const ended = yield* Deferred.make<void>()
      const sum = Model.each(
        Outer,
        Effect.map(
          Counting,
          (counting) =>
            ({ x }) =>
              Stream.runFold(
                counting.stream({ TO: x }),
                () => ({ y: 0 }),
                ({ y }, { N }) => ({ y: y + N }),
              ),
        ),
      )
      const outer = yield* Testing.model(sum.pipe(Layer.provide(counting([], ended))))
      expect(yield* outer.infer({ x: 4 })).toEqual({ y: 10 })
    }),
  )
})

describe("as promises", () => {
  const AsyncLive = Model.each(
    Outer,
    Effect.map(Inner, (inner) => async ({ x }, { run }) => {
      const { y } = await run(inner.infer({ x }))
      return { y: y + 1 }
    }),
  )

  it.effect("a function that returns a promise calls another model with run", () =>
    Effect.gen(function* () {
      const outer = yield* Testing.model(AsyncLive.pipe(Layer.provide(DoubleLive)))
      expect(yield* outer.infer({ x: 1 })).toEqual({ y: 3 })
    }),
  )

  it.effect("with the deadline and the id of its request, whose end is the call's", () =>
    Effect.gen(function* () {
      const { begun, ended, layer } = yield* waiting
      const outer = yield* Testing.model(AsyncLive.pipe(Layer.provide(layer)))
      const answer = yield* Effect.forkChild(Effect.flip(outer.infer({ x: 1 }, { id: "7", timeout: "1 second" })))
      expect(yield* Deferred.await(begun)).toEqual({ deadline: 1_000, id: "7" })
      yield* TestClock.adjust("1 second")
      expect(yield* Fiber.join(answer)).toMatchObject({ _tag: "DeadlineExceeded" })
      yield* Deferred.await(ended)
    }),
  )

  it.effect("an error of the inner model rejects the promise with its tag", () =>
    Effect.gen(function* () {
      const failing = Model.each(Inner, () => Effect.fail(new QueueFull({ message: "no room" })))
      const outer = yield* Testing.model(AsyncLive.pipe(Layer.provide(failing)))
      expect(yield* Effect.flip(outer.infer({ x: 1 }))).toEqual(new QueueFull({ message: "no room" }))
    }),
  )

  it.effect("handlers of whole batches and of their requests have it too", () =>
    Effect.gen(function* () {
      const whole = Model.batch(
        Outer,
        Effect.map(
          Inner,
          (inner) =>
            ({ x }, { run }) =>
              run(inner.inferBatch({ x })),
        ),
      )
      const requests = Model.requests(
        Other,
        Effect.map(
          Outer,
          (outer) => (requests) =>
            Promise.all(requests.map(async ({ inputs, run }) => Result.succeed(await run(outer.inferBatch(inputs))))),
        ),
      )
      const other = yield* Testing.model(requests.pipe(Layer.provide(whole), Layer.provide(DoubleLive)))
      expect(yield* other.infer({ x: 4 })).toEqual({ y: 8 })
    }),
  )

  it.effect("iterates a decoupled model, and stops it when the reader leaves", () =>
    Effect.gen(function* () {
      const ended = yield* Deferred.make<void>()
      const endless = Model.stream(Counting, () =>
        Stream.iterate(1, (N) => N + 1).pipe(
          Stream.map((N) => ({ N })),
          Stream.concat(Stream.never),
          Stream.ensuring(Deferred.succeed(ended, undefined)),
        ),
      )
      class Even extends Model.Service<Even>()("even", { inputs: {}, outputs: { N: Tensor.scalar("INT32") } }) {}
      const even = Model.stream(
        Even,
        Effect.map(
          Counting,
          (counting) =>
            async function* (_, { run }) {
              for await (const { N } of run(counting.stream({ TO: 0 }))) if (N % 2 === 0) yield { N }
            },
        ),
      )
      const outer = yield* Testing.model(even.pipe(Layer.provide(endless)))
      expect(yield* Stream.runCollect(Stream.take(outer.stream({}), 2))).toEqual([{ N: 2 }, { N: 4 }])
      yield* Deferred.await(ended)
    }),
  )

  it.effect("also where the reader leaves while nothing comes", () =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const ended = yield* Deferred.make<void>()
      const silent = Model.stream(Counting, () =>
        Stream.never.pipe(
          Stream.onStart(Deferred.succeed(begun, undefined)),
          Stream.ensuring(Deferred.succeed(ended, undefined)),
        ),
      )
      class Echo extends Model.Service<Echo>()("echo", { inputs: {}, outputs: { N: Tensor.scalar("INT32") } }) {}
      const echo = Model.stream(
        Echo,
        Effect.map(
          Counting,
          (counting) =>
            async function* (_, { run }) {
              yield* run(counting.stream({ TO: 0 }))
            },
        ),
      )
      const outer = yield* Testing.model(echo.pipe(Layer.provide(silent)))
      const reader = yield* Effect.forkChild(Stream.runDrain(outer.stream({})))
      yield* Deferred.await(begun)
      yield* Fiber.interrupt(reader)
      yield* Deferred.await(ended)
    }),
  )
})

describe("circles", () => {
  /** Calls the model of this name; without a name, answers without a call. */
  const forwarding = <Self>(
    model: Model.ModelClass<Self, string, typeof numbers.inputs, typeof numbers.outputs>,
    next: (x: number) => string,
  ) =>
    Model.each(
      model,
      Effect.map(Registry, (models) =>
        Effect.fnUntraced(function* ({ x }) {
          const to = next(x)
          if (to === "") return { y: x }
          const { y } = yield* models.infer(to, { x: Tensor.make("INT32", [1], Int32Array.of(x)) })
          return { y: y === undefined ? 0 : Number(y.data[0]) }
        }),
      ),
    )

  it.effect("a model that calls itself gets an error, and answers the next request", () =>
    Effect.gen(function* () {
      const self = forwarding(Outer, (x) => (x > 0 ? "outer" : ""))
      const outer = yield* Testing.model(self.pipe(Layer.provide(Registry.layer)))
      expect(yield* Effect.flip(outer.infer({ x: 1 }))).toMatchObject({
        _tag: "ExecutionFailed",
        message: "model 'outer' cannot call itself, because the calls would wait for each other forever: outer → outer",
      })
      expect(yield* outer.infer({ x: 0 })).toEqual({ y: 0 })
    }),
  )

  it.effect("so is the last of several models that call each other", () =>
    Effect.gen(function* () {
      const all = Layer.mergeAll(
        forwarding(Outer, () => "inner"),
        forwarding(Inner, () => "other"),
        forwarding(Other, (x) => (x > 0 ? "outer" : "")),
      )
      const outer = yield* Testing.model(all.pipe(Layer.provide(Registry.layer)), Outer)
      expect(yield* Effect.flip(outer.infer({ x: 1 }))).toMatchObject({
        _tag: "ExecutionFailed",
        message:
          "model 'other' cannot call model 'outer', because the calls would wait for each other forever: other → outer → inner → other",
      })
      expect(yield* outer.infer({ x: 0 })).toEqual({ y: 0 })
    }),
  )

  it.effect("and the later of two that call each other for different requests, with one instance each", () =>
    Effect.gen(function* () {
      const [outerBegun, innerBegun] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      /** Calls the other model if x is 1, after the other has started a call too. */
      const crossing = (to: string, own: Deferred.Deferred<void>, its: Deferred.Deferred<void>) =>
        Effect.map(Registry, (models) =>
          Effect.fnUntraced(function* ({ x }: { readonly x: number }) {
            if (x === 0) return { y: 0 }
            yield* Deferred.succeed(own, undefined)
            yield* Deferred.await(its)
            yield* models.infer(to, { x: Tensor.make("INT32", [1], Int32Array.of(0)) })
            return { y: 1 }
          }),
        )
      const both = Model.each(
        Other,
        Effect.map(Registry, (models) =>
          Effect.fnUntraced(function* () {
            const ask = (model: string) =>
              Effect.result(models.infer(model, { x: Tensor.make("INT32", [1], Int32Array.of(1)) }))
            const answers = yield* Effect.all([ask("outer"), ask("inner")], { concurrency: 2 })
            const failures = answers.filter(Result.isFailure)
            expect(failures).toHaveLength(1)
            expect(failures[0]?.failure.message).toContain("the calls would wait for each other forever: ")
            return { y: answers.length - failures.length }
          }),
        ),
      )
      const layer = Layer.mergeAll(
        both,
        Model.each(Outer, crossing("inner", outerBegun, innerBegun)),
        Model.each(Inner, crossing("outer", innerBegun, outerBegun)),
      )
      const other = yield* Testing.model(layer.pipe(Layer.provide(Registry.layer)), Other)
      expect(yield* other.infer({ x: 1 })).toEqual({ y: 1 })
    }),
  )
})
