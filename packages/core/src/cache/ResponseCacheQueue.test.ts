/** Identical requests with different queue options: each waits as if alone, and all receive the first response. */
import { expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber } from "effect"
import * as Model from "../Model.ts"
import * as Tensor from "../Tensor.ts"
import * as Testing from "../Testing.ts"

class Slow extends Model.Service<Slow>()("slow", {
  inputs: { x: Tensor.scalar("INT32") },
  outputs: { y: Tensor.scalar("INT32") },
  batching: { allowTimeoutOverride: true, defaultTimeout: "1 minute", priorities: { levels: 2, default: 2 } },
}) {}

/** One request at a time, each until its gate opens; 0 is there already, and holds the instance. */
const busy = Effect.gen(function* () {
  const gates = new Map<number, Deferred.Deferred<void>>()
  const gate = (x: number) => {
    const known = gates.get(x) ?? Deferred.makeUnsafe<void>()
    gates.set(x, known)
    return known
  }
  const executed: Array<number> = []
  const layer = Model.each(
    Slow,
    ({ x }) => {
      executed.push(x)
      return Effect.as(Deferred.await(gate(x)), { y: 2 * x })
    },
    { responseCache: true },
  )
  const model = yield* Testing.model(layer)
  const infer = (x: number, options: Model.CallOptions = {}) =>
    Effect.forkChild(model.infer({ x }, options), { startImmediately: true })
  const first = yield* infer(0)
  yield* Testing.advance(0)
  const open = (x: number) => Effect.andThen(Deferred.succeed(gate(x), undefined), Testing.advance(0))
  return { model, infer, open, executed, first }
})

it.effect("one that waits for a short time does not make another one fail", () =>
  Effect.gen(function* () {
    const { model, infer, open, executed } = yield* busy
    const [short, long] = [yield* infer(1, { queueTimeout: "10 millis" }), yield* infer(1)]
    yield* Testing.advance("10 millis")
    expect(yield* Effect.flip(Fiber.join(short))).toMatchObject({ _tag: "QueueTimeout" })
    yield* open(0)
    yield* open(1)
    expect(yield* Fiber.join(long)).toEqual({ y: 2 })
    expect(executed).toEqual([0, 1])
    expect(model.model.description.statistics.failures).toMatchObject({ REJECTED: 1, CANCELED: 0 })
  }),
)

it.effect("the first that is executed answers all, and nothing is executed or counted twice", () =>
  Effect.gen(function* () {
    const { model, infer, open, executed, first } = yield* busy
    const pending = [
      yield* infer(1),
      yield* infer(1, { queueTimeout: "1 second" }),
      yield* infer(1, { queueTimeout: "2 seconds" }),
    ]
    yield* open(0)
    yield* open(1)
    expect(yield* Fiber.joinAll([first, ...pending])).toEqual([{ y: 0 }, { y: 2 }, { y: 2 }, { y: 2 }])
    yield* Testing.advance("1 minute")
    expect(executed).toEqual([0, 1])
    const { success, fail, cacheHit, cacheMiss } = model.model.description.statistics
    expect([success.count, fail.count, cacheHit.count, cacheMiss.count]).toEqual([4, 0, 2, 2])
    expect(model.model.life.pending()).toBe(0)
  }),
)

it.effect("one of a higher priority does not wait behind another's", () =>
  Effect.gen(function* () {
    const { infer, open, executed } = yield* busy
    const low = yield* infer(1)
    const other = yield* infer(2)
    const high = yield* infer(2, { priority: 1 })
    yield* open(0)
    expect(executed).toEqual([0, 2])
    yield* open(2)
    expect(yield* Fiber.joinAll([high, other])).toEqual([{ y: 4 }, { y: 4 }])
    yield* open(1)
    expect(yield* Fiber.join(low)).toEqual({ y: 2 })
    expect(executed).toEqual([0, 2, 1])
  }),
)

it.effect("one that has come later than another with the same time waits on when that one's is over", () =>
  Effect.gen(function* () {
    const { infer, open } = yield* busy
    const early = yield* infer(1, { queueTimeout: "100 millis" })
    yield* Testing.advance("90 millis")
    const later = yield* infer(1, { queueTimeout: "100 millis" })
    yield* Testing.advance("10 millis")
    expect(Exit.isFailure(yield* Fiber.await(early))).toBe(true)
    yield* Testing.advance("20 millis")
    yield* open(0)
    yield* open(1)
    expect(yield* Fiber.join(later)).toEqual({ y: 2 })
  }),
)

it.effect("those whose time is over together fail together", () =>
  Effect.gen(function* () {
    const { infer } = yield* busy
    const pending = yield* Effect.forEach([1, 2, 3], () => infer(1, { queueTimeout: "100 millis" }))
    yield* Testing.advance("100 millis")
    const exits = yield* Effect.forEach(pending, (fiber) => Fiber.await(fiber))
    expect(exits.map(Exit.isFailure)).toEqual([true, true, true])
  }),
)

it.effect("one that leaves takes its own execution back alone", () =>
  Effect.gen(function* () {
    const { model, infer, open } = yield* busy
    const [leaving, staying] = [yield* infer(1, { queueTimeout: "1 second" }), yield* infer(1)]
    yield* Fiber.interrupt(leaving)
    expect(model.model.description.statistics.failures.CANCELED).toBe(1)
    yield* open(0)
    yield* open(1)
    expect(yield* Fiber.join(staying)).toEqual({ y: 2 })
  }),
)
