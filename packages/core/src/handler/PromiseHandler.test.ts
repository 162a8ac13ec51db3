/** Functions that return promises, as handlers of every mode that answers once. */
import { expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Layer, Result, Scope } from "effect"
import { TestClock } from "effect/testing"
import { InvalidRequest } from "../error/InferenceError.ts"
import * as Model from "../Model.ts"
import * as Tensor from "../Tensor.ts"

class Shout extends Model.Service<Shout>()("shout", {
  inputs: { TEXT: Tensor.utf8() },
  outputs: { TEXT: Tensor.utf8() },
  maxBatchSize: 4,
}) {}

class Scale extends Model.Service<Scale>()("scale", {
  inputs: { x: Tensor.FP32(1) },
  outputs: { y: Tensor.FP32(1) },
  maxBatchSize: 4,
}) {}

const shout = Model.each(Shout, async ({ TEXT }) => {
  await Promise.resolve()
  if (TEXT === "") throw new InvalidRequest({ message: "nothing to shout" })
  if (TEXT === "?") throw new Error("too loud")
  return { TEXT: TEXT.toUpperCase() }
})

it.effect(
  "each: a promise is the answer, and its rejection a failure, which keeps its tag if it is one of Errors",
  () =>
    Effect.gen(function* () {
      const { infer } = yield* Shout
      const [response, tagged, other] = yield* Effect.all(
        [infer({ TEXT: "hello" }), Effect.flip(infer({ TEXT: "" })), Effect.flip(infer({ TEXT: "?" }))],
        { concurrency: "unbounded" },
      )
      expect(response).toEqual({ TEXT: "HELLO" })
      expect(tagged).toMatchObject({ _tag: "InvalidRequest", message: "nothing to shout" })
      expect(other).toMatchObject({
        _tag: "ExecutionFailed",
        message: "Failed to process the request(s) for model 'shout_0', message: too loud",
      })
    }).pipe(Effect.provide(shout)),
)

it.effect("batch: a promise is the answer, and its rejection that of all its requests", () =>
  Effect.gen(function* () {
    const { infer } = yield* Scale
    const sample = (value: number) => ({ x: Tensor.make("FP32", [1], Float32Array.of(value)) })
    const both = yield* Effect.all([infer(sample(1)), infer(sample(2))], { concurrency: "unbounded" })
    expect(both.map(({ y }) => y.data[0])).toEqual([1, 2])
    const bad = [infer(sample(1)), infer(sample(-1))].map(Effect.flip)
    const errors = yield* Effect.all(bad, { concurrency: "unbounded" })
    expect(errors).toMatchObject([{ message: "negative" }, { message: "negative" }])
  }).pipe(
    Effect.provide(
      Model.batch(Scale, async ({ x }) => {
        if (x.data.some((value) => value < 0)) throw new InvalidRequest({ message: "negative" })
        return { y: x }
      }),
    ),
  ),
)

it.effect("a caller that leaves aborts the signal; the instance is busy until the promise has ended", () =>
  Effect.gen(function* () {
    const events: Array<string> = []
    let end = () => {}
    const handler = Model.each(Shout, async ({ TEXT }, { signal }) => {
      events.push(`begin ${TEXT}`)
      signal.addEventListener("abort", () => events.push(`abort ${TEXT}`))
      if (TEXT === "slow") await new Promise<void>((resolve) => (end = resolve))
      events.push(`end ${TEXT}`)
      return { TEXT }
    })
    yield* Effect.gen(function* () {
      const { infer } = yield* Shout
      const slow = yield* Effect.forkChild(infer({ TEXT: "slow" }), { startImmediately: true })
      yield* TestClock.adjust(0)
      yield* Fiber.interrupt(slow)
      const next = yield* Effect.forkChild(infer({ TEXT: "next" }), { startImmediately: true })
      yield* TestClock.adjust(0)
      expect(events).toEqual(["begin slow", "abort slow"])
      end()
      yield* Fiber.join(next)
      expect(events).toEqual(["begin slow", "abort slow", "end slow", "begin next", "end next"])
    }).pipe(Effect.provide(handler))
  }),
)

it.effect("an unload aborts the signal, waits a second for the promise, and then finalizes the handler", () =>
  Effect.gen(function* () {
    const events: Array<string> = []
    const handler = Model.each(
      Shout,
      Effect.acquireRelease(
        Effect.succeed(async ({ TEXT }: { TEXT: string }, { signal }: { signal: AbortSignal }) => {
          signal.addEventListener("abort", () => events.push("abort"))
          await new Promise<void>(() => {})
          return { TEXT }
        }),
        () => Effect.sync(() => events.push("finalize")),
      ),
    )
    const scope = yield* Scope.make()
    const context = yield* Layer.buildWithScope(handler, scope)
    const { infer } = yield* Effect.provideContext(Shout, context)
    const caller = yield* Effect.forkChild(infer({ TEXT: "slow" }), { startImmediately: true })
    yield* TestClock.adjust(0)
    const closed = yield* Effect.forkChild(Scope.close(scope, Exit.void), { startImmediately: true })
    yield* TestClock.adjust(999)
    expect([events, closed.pollUnsafe()]).toEqual([["abort"], undefined])
    yield* TestClock.adjust(1)
    yield* Fiber.join(closed)
    expect(events).toEqual(["abort", "finalize"])
    expect(yield* Effect.flip(Fiber.join(caller))).toMatchObject({ _tag: "Unavailable" })
  }),
)

const waiting = (signal: AbortSignal) =>
  new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()))

it.effect("a cancelled request in a batch aborts only its own signal", () =>
  Effect.gen(function* () {
    const events: Array<string> = []
    const each = Model.each(Shout, async ({ TEXT }, { signal }) => {
      events.push(`begin ${TEXT}`)
      await Promise.race([waiting(signal).then(() => events.push(`abort ${TEXT}`)), gate.promise])
      return { TEXT }
    })
    const requests = Model.requests(Shout, async (requests, { signal: all }) => {
      all.addEventListener("abort", () => events.push("abort all"))
      for (const { inputs, signal } of requests) {
        const [TEXT] = inputs.TEXT.data.map((text) => new TextDecoder().decode(text))
        events.push(`begin ${TEXT}`)
        signal.addEventListener("abort", () => events.push(`abort ${TEXT}`))
      }
      await gate.promise
      return requests.map(({ inputs }) => Result.succeed({ TEXT: inputs.TEXT }))
    })
    let gate = Promise.withResolvers<void>()
    for (const handler of [each, requests]) {
      gate = Promise.withResolvers<void>()
      yield* Effect.gen(function* () {
        const { infer } = yield* Shout
        const [leaves, stays] = [
          yield* Effect.forkChild(infer({ TEXT: "leaves" }), { startImmediately: true }),
          yield* Effect.forkChild(infer({ TEXT: "stays" }), { startImmediately: true }),
        ]
        yield* TestClock.adjust(0)
        yield* Fiber.interrupt(leaves)
        yield* TestClock.adjust(0)
        expect(events.splice(0)).toEqual(["begin leaves", "begin stays", "abort leaves"])
        gate.resolve()
        expect(yield* Fiber.join(stays)).toEqual({ TEXT: "stays" })
        expect(events).toEqual([])
      }).pipe(Effect.provide(handler))
    }
  }),
)

it.effect("an effect is interrupted as soon as its own caller has left, and the others of its batch go on", () =>
  Effect.gen(function* () {
    const events: Array<string> = []
    const handler = Model.each(Shout, ({ TEXT }) =>
      Effect.as(Effect.sleep("1 second"), { TEXT }).pipe(
        Effect.onInterrupt(() => Effect.sync(() => events.push(TEXT))),
      ),
    )
    yield* Effect.gen(function* () {
      const { infer, model } = yield* Shout
      const stays = yield* Effect.forkChild(infer({ TEXT: "stays" }), { startImmediately: true })
      const late = yield* Effect.forkChild(Effect.result(infer({ TEXT: "late" }, { timeout: "10 millis" })), {
        startImmediately: true,
      })
      yield* TestClock.adjust("10 millis")
      expect(events).toEqual(["late"])
      expect(yield* Fiber.join(late)).toMatchObject({ failure: { _tag: "DeadlineExceeded" } })
      yield* TestClock.adjust("1 second")
      expect(yield* Fiber.join(stays)).toEqual({ TEXT: "stays" })
      const { success, failures, executionCount, inferenceCount } = model.description.statistics
      expect([success.count, failures.CANCELED, executionCount, inferenceCount]).toEqual([1, 1, 1, 1])
    }).pipe(Effect.provide(handler))
  }),
)

it.effect("a handler is finalized after the promises that it has given have ended", () =>
  Effect.gen(function* () {
    const events: Array<string> = []
    const started = yield* Deferred.make<void>()
    const handler = Effect.acquireRelease(
      Effect.succeed(async (_: unknown, { signal }: Pick<Model.HandledBatch, "signal">): Promise<never> => {
        Deferred.doneUnsafe(started, Exit.void)
        await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()))
        await Promise.resolve()
        events.push("end")
        throw new Error("aborted")
      }),
      () => Effect.sync(() => events.push("finalize")),
    )
    const scope = yield* Scope.make()
    const context = yield* Layer.buildWithScope(Model.each(Shout, handler), scope)
    const pending = Effect.flip(
      Effect.provide(
        Effect.flatMap(Shout, ({ infer }) => infer({ TEXT: "x" })),
        context,
      ),
    )
    const caller = yield* Effect.forkChild(pending, { startImmediately: true })
    yield* Deferred.await(started)
    yield* Scope.close(scope, Exit.void)
    expect(events).toEqual(["end", "finalize"])
    expect((yield* Fiber.join(caller))._tag).toBe("Unavailable")
  }),
)
