/** Models whose instances share resources: their queues and batches, on the test clock. */
import { expect, it } from "@effect/vitest"
import { Deferred, Duration, Effect, Exit, Fiber, Result, Scheduler as EffectScheduler } from "effect"
import { TestClock } from "effect/testing"
import { ExecutionFailed } from "../error/InferenceError.ts"
import { RateLimiter, type RegisteredPermit } from "../limiter/RateLimiter.ts"
import type { GroupLimits, ResourceLimit } from "../limiter/Resource.ts"
import { plain } from "../model/QueuePolicy.ts"
import { harness } from "./Scheduler.fixture.ts"

const unit = (count = 1, name = "R"): GroupLimits => ({ resources: [{ name, count }] })

/** Models with one request per batch, of one rate limiter. */
const limitedModels = Effect.fnUntraced(function* (limits?: ReadonlyArray<ResourceLimit>) {
  const tasks = (yield* EffectScheduler.Scheduler).makeDispatcher()
  const limiter = new RateLimiter(limits, (task) => tasks.scheduleTask(task, 0))
  return (needs: ReadonlyArray<GroupLimits>, options: Parameters<typeof harness>[0] = {}) => {
    const registered: Array<RegisteredPermit> = []
    const permit = (index: number) => {
      const one = Result.getOrThrowWith(limiter.register(0, needs[index] ?? {}), (message) => new Error(message))
      registered.push(one)
      return one.permit
    }
    return Effect.map(harness({ maxBatchSize: 1, ...options, instanceCount: needs.length, permit }), (made) => ({
      ...made,
      registered,
    }))
  }
})

it.effect("a batch waits for the resources of another model, in the queue", () =>
  Effect.gen(function* () {
    const model = yield* limitedModels()
    const [a, b] = [yield* model([unit()]), yield* model([unit()])]
    yield* a.send(1)
    yield* a.settle
    const waiting = yield* b.send(1)
    yield* TestClock.adjust(10)
    expect([a.sizes(), b.sizes(), b.scheduler.pending()]).toEqual([["1"], [], 1])
    yield* a.complete(0)
    expect([b.sizes(), b.scheduler.pending()]).toEqual([["1"], 0])
    yield* b.complete(0)
    yield* Fiber.join(waiting)
    expect(b.statistics.queue.ns).toBe(10e6)
  }),
)

it.effect("a batch that waits for resources grows", () =>
  Effect.gen(function* () {
    const model = yield* limitedModels()
    const [a, b] = [yield* model([unit()]), yield* model([unit()], { maxBatchSize: 4 })]
    yield* a.send(1)
    yield* a.settle
    for (const rows of [1, 2, 1]) {
      yield* b.send(rows)
      yield* b.settle
    }
    yield* a.complete(0)
    expect(b.sizes()).toEqual(["1+2+1"])
  }),
)

it.effect("an instance executes one batch at a time, also one that prepares the next", () =>
  Effect.gen(function* () {
    const model = yield* limitedModels([{ name: "R", count: 9 }])
    const a = yield* model([unit()], { concurrency: 2 })
    for (let index = 0; index < 3; index++) yield* a.send(1)
    yield* a.settle
    expect(a.sizes()).toEqual(["1"])
    const free = yield* model([{}], { concurrency: 2 })
    for (let index = 0; index < 3; index++) yield* free.send(1)
    yield* free.settle
    expect(free.sizes()).toEqual(["1", "1"])
  }),
)

it.effect("an instance without resources never waits", () =>
  Effect.gen(function* () {
    const model = yield* limitedModels()
    const [a, b, free] = [yield* model([unit()]), yield* model([unit()]), yield* model([{ priority: 9 }])]
    for (const { send, settle } of [a, b, free]) {
      yield* send(1)
      yield* settle
    }
    expect([a.sizes(), b.sizes(), free.sizes()]).toEqual([["1"], [], ["1"]])
  }),
)

it.effect("the instance with the fewest executions, times priority, goes first", () =>
  Effect.gen(function* () {
    const model = yield* limitedModels()
    const one = yield* model([
      { ...unit(), priority: 1 },
      { ...unit(), priority: 2 },
    ])
    for (let index = 0; index < 6; index++) yield* one.send(1)
    yield* one.settle
    for (let index = 0; index < 6; index++) yield* one.complete(index)
    expect(one.runs.map(({ instance }) => instance)).toEqual(["m_0_0", "m_0_1", "m_0_0", "m_0_1", "m_0_0", "m_0_0"])
  }),
)

it.effect("a model of priority 2 has half the executions of one of priority 1", () =>
  Effect.gen(function* () {
    const model = yield* limitedModels()
    const [one, two] = [yield* model([{ ...unit(), priority: 1 }]), yield* model([{ ...unit(), priority: 2 }])]
    for (let index = 0; index < 30; index++) {
      yield* one.send(1)
      yield* two.send(1)
    }
    yield* one.settle
    for (let step = 0; step < 30; step++) {
      const running = [one, two].filter(({ runs }) => runs.some(({ gate }) => !Deferred.isDoneUnsafe(gate)))
      expect(running).toHaveLength(1)
      for (const { complete, runs } of running) yield* complete(runs.length - 1)
    }
    expect([one.runs.length, two.runs.length]).toEqual([20, 11])
  }),
)

it.effect("the instance that has its resources takes the batch, and not another one that waits, too", () =>
  Effect.gen(function* () {
    const model = yield* limitedModels([{ name: "R", count: 4 }])
    const one = yield* model([unit(3), unit(2)])
    for (let index = 0; index < 3; index++) yield* one.send(1)
    yield* one.settle
    for (let index = 0; index < 3; index++) yield* one.complete(index)
    expect(one.runs.map(({ instance }) => instance)).toEqual(["m_0_0", "m_0_1", "m_0_0"])
  }),
)

it.effect("an instance without resources takes the batch that another one would wait with", () =>
  Effect.gen(function* () {
    const model = yield* limitedModels()
    const [holder, mixed] = [yield* model([unit()]), yield* model([unit(), {}])]
    for (const { send, settle } of [holder, mixed]) {
      yield* send(1)
      yield* settle
    }
    expect(mixed.runs.map(({ instance }) => instance)).toEqual(["m_0_1"])
  }),
)

it.effect("a batch that is not ready does not wait for resources, and blocks no other", () =>
  Effect.gen(function* () {
    const model = yield* limitedModels([
      { name: "R", count: 1 },
      { name: "S", count: 1 },
    ])
    const delayed = yield* model([unit()], { maxBatchSize: 2, maxQueueDelay: 10e6 })
    const [a, b] = [yield* model([unit()]), yield* model([unit(1, "S")])]
    yield* a.send(1)
    yield* a.settle
    yield* delayed.send(1)
    yield* delayed.settle
    yield* b.send(1)
    yield* b.settle
    expect(b.sizes()).toEqual(["1"])
    yield* a.complete(0)
    expect(delayed.sizes()).toEqual([])
    yield* a.send(1)
    yield* a.settle
    expect(a.sizes()).toEqual(["1", "1"])
    yield* TestClock.adjust(10)
    expect(delayed.sizes()).toEqual([])
    yield* a.complete(1)
    expect(delayed.sizes()).toEqual(["1"])
  }),
)

it.effect.each(["plain", "policies"] as const)("callers that leave take their wait along: %s", (kind) =>
  Effect.gen(function* () {
    const policy = { ...plain(9).defaultPolicy, defaultTimeout: Duration.millis(5) }
    const queueing = kind === "plain" ? undefined : { ...plain(9), defaultPolicy: policy }
    const model = yield* limitedModels([
      { name: "R", count: 1 },
      { name: "S", count: 1 },
    ])
    const holder = yield* model([unit()])
    const leaving = yield* model([unit()], { queueing })
    const other = yield* model([unit(1, "S")])
    yield* holder.send(1)
    yield* holder.settle
    const left = yield* leaving.send(1)
    yield* leaving.settle
    yield* other.send(1)
    yield* other.settle
    expect(other.sizes()).toEqual([])
    if (kind === "plain") yield* Fiber.interrupt(left)
    else yield* TestClock.adjust(5)
    yield* other.settle
    expect([leaving.sizes(), other.sizes(), leaving.scheduler.pending()]).toEqual([[], ["1"], 0])
  }),
)

it.effect.each([
  { end: "fails", exit: Exit.fail(new ExecutionFailed({ message: "broken" })) },
  { end: "dies", exit: Exit.die("broken") },
  { end: "is interrupted", exit: Exit.interrupt() },
])("a batch that $end gives its resources back", ({ exit }) =>
  Effect.gen(function* () {
    const model = yield* limitedModels()
    const [a, b] = [yield* model([unit()]), yield* model([unit()])]
    yield* a.send(1)
    yield* a.settle
    yield* b.send(1)
    yield* b.settle
    yield* a.complete(0, exit)
    expect(b.sizes()).toEqual(["1"])
  }),
)

it.effect("a batch that throws as it starts gives its resources back", () =>
  Effect.gen(function* () {
    const model = yield* limitedModels()
    const broken = yield* model([unit()], {
      wrap: () => () => {
        throw new Error("broken")
      },
    })
    const b = yield* model([unit()])
    yield* Effect.exit(Fiber.join(yield* broken.send(1)))
    yield* b.send(1)
    yield* b.settle
    expect(b.sizes()).toEqual(["1"])
  }),
)

it.effect("a batch without callers holds its resources until it ends", () =>
  Effect.gen(function* () {
    const model = yield* limitedModels()
    const [a, b] = [yield* model([unit()], { interruptible: false }), yield* model([unit()])]
    const left = yield* a.send(1)
    yield* a.settle
    yield* b.send(1)
    yield* Fiber.interrupt(left)
    yield* b.settle
    expect(b.sizes()).toEqual([])
    yield* a.complete(0)
    expect(b.sizes()).toEqual(["1"])
  }),
)

it.effect("a stop gives back what its batches hold, also one that it abandons, and ends its waits", () =>
  Effect.gen(function* () {
    const model = yield* limitedModels()
    const options = { interruptible: false, interruptTimeout: 100 }
    const [a, b] = [yield* model([unit()], options), yield* model([unit()])]
    const c = yield* model([unit()])
    for (const { send, settle } of [a, b, c]) {
      yield* send(1)
      yield* settle
    }
    yield* b.scheduler.stop
    const stopping = yield* Effect.forkChild(a.scheduler.stop, { startImmediately: true })
    yield* TestClock.adjust(100)
    yield* Fiber.join(stopping)
    yield* c.settle
    expect([b.sizes(), c.sizes()]).toEqual([[], ["1"]])
  }),
)

it.effect("an instance that dies while it waits no longer blocks the others, and waits again once it is back", () =>
  Effect.gen(function* () {
    const model = yield* limitedModels([
      { name: "R", count: 1 },
      { name: "S", count: 1 },
    ])
    const [holder, dying, other] = [yield* model([unit()]), yield* model([unit()]), yield* model([unit(1, "S")])]
    for (const { send, settle } of [holder, dying, other]) {
      yield* send(1)
      yield* settle
    }
    expect(other.sizes()).toEqual([])
    dying.setStatus("m_0_0", "restarting")
    yield* other.settle
    expect(other.sizes()).toEqual(["1"])
    yield* holder.complete(0)
    expect(dying.sizes()).toEqual([])
    dying.setStatus("m_0_0", "available")
    yield* dying.settle
    expect(dying.sizes()).toEqual(["1"])
  }),
)

it.effect("an instance that is replaced holds its resources to the end of its batch", () =>
  Effect.gen(function* () {
    const model = yield* limitedModels()
    const [replaced, other] = [yield* model([unit()]), yield* model([unit()])]
    for (const { send, settle } of [replaced, other]) {
      yield* send(1)
      yield* settle
    }
    yield* Effect.forkChild(replaced.scheduler.replaceInstances([]), { startImmediately: true })
    yield* other.settle
    expect(other.sizes()).toEqual([])
    yield* replaced.complete(0)
    expect(other.sizes()).toEqual(["1"])
  }),
)

it.effect("instances that are replaced end their wait, and the new ones wait", () =>
  Effect.gen(function* () {
    const model = yield* limitedModels()
    const [holder, replaced] = [yield* model([unit()]), yield* model([unit()])]
    const [successor] = [yield* model([unit()])]
    for (const { send, settle } of [holder, replaced]) {
      yield* send(1)
      yield* settle
    }
    yield* replaced.scheduler.replaceInstances(successor.instances)
    yield* holder.complete(0)
    expect([replaced.sizes(), successor.sizes()]).toEqual([[], ["1"]])
  }),
)
