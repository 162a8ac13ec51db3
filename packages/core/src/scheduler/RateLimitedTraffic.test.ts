/**
 * Random models that share resources, under random traffic: no more units are used than there are, and once every batch
 * ends, every request is answered. Requests are cancelled, batches fail, instances die and are replaced meanwhile.
 */
import { expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Result, Scheduler as EffectScheduler } from "effect"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import { ExecutionFailed } from "../error/InferenceError.ts"
import type { Instance } from "../instance/Instance.ts"
import { RateLimiter } from "../limiter/RateLimiter.ts"
import type { Resource } from "../limiter/Resource.ts"
import { plain } from "../model/QueuePolicy.ts"
import { harness } from "./Scheduler.fixture.ts"

const limits = { A: 4, B: 3, C: 5 } as const

const names = ["A", "B", "C"] as const

const instanceNeeds = fc.record({
  priority: fc.nat(3),
  counts: fc.array(fc.nat(3), { minLength: 3, maxLength: 3 }),
})

const modelNeeds = fc.record({
  instances: fc.array(instanceNeeds, { minLength: 1, maxLength: 3 }),
  maxQueueDelay: fc.constantFrom(0, 0, 3e6),
  isPolicyQueue: fc.boolean(),
  concurrency: fc.constantFrom(1, 2),
  isInterruptible: fc.boolean(),
})

const action = fc.record({
  kind: fc.constantFrom(
    "send",
    "send",
    "send",
    "cancel",
    "end",
    "end",
    "fail",
    "die",
    "revive",
    "replace",
    "stop",
    "wait",
  ),
  model: fc.nat(),
  number: fc.nat(),
})

const resourcesOf = (counts: ReadonlyArray<number>): ReadonlyArray<Resource> =>
  names.flatMap((name, index) => ({ name, count: counts[index] ?? 0 }))

const run = Effect.fnUntraced(function* (
  models: ReadonlyArray<typeof modelNeeds extends fc.Arbitrary<infer T> ? T : never>,
  actions: ReadonlyArray<typeof action extends fc.Arbitrary<infer T> ? T : never>,
) {
  const tasks = (yield* EffectScheduler.Scheduler).makeDispatcher()
  const limiter = new RateLimiter(
    Object.entries(limits).map(([name, count]) => ({ name, count })),
    (task) => tasks.scheduleTask(task, 0),
  )
  const used = { A: 0, B: 0, C: 0 }
  const use = (counts: ReadonlyArray<number>, sign: number) => {
    for (const [index, name] of names.entries()) {
      used[name] += sign * (counts[index] ?? 0)
      expect(used[name]).toBeLessThanOrEqual(limits[name])
    }
  }
  const made = yield* Effect.forEach(
    models,
    ({ instances, maxQueueDelay, isPolicyQueue, concurrency, isInterruptible }) =>
      Effect.gen(function* () {
        const started = yield* harness({
          maxBatchSize: 2,
          maxQueueDelay,
          concurrency,
          interruptible: isInterruptible,
          queueing: isPolicyQueue ? plain(1000) : undefined,
          maxQueueSize: 1000,
          instanceCount: instances.length,
          permit: (index) => {
            const { counts = [], priority = 1 } = instances[index] ?? {}
            const registered = limiter.register(0, { resources: resourcesOf(counts), priority })
            return Result.getOrThrowWith(registered, (message) => new Error(message)).permit
          },
        })
        for (const [index, instance] of started.instances.entries())
          counted(instance, instances[index]?.counts ?? [], use)
        return { ...started, current: started.instances, isStopped: false }
      }),
  )
  const sent: Array<Fiber.Fiber<unknown, unknown>> = []
  const running = () =>
    made.flatMap(({ runs }) => runs.map(({ gate }) => gate).filter((gate) => !Deferred.isDoneUnsafe(gate)))
  const apply = Effect.fnUntraced(function* ({ kind, model: chosen, number }: (typeof actions)[number]) {
    const model = made[chosen % made.length]
    if (model === undefined) return
    const gates = running()
    const gate = gates[number % gates.length]
    const instance = model.instances[number % model.instances.length]
    if (kind === "send") sent.push(yield* model.send(1 + (number % 2)))
    else if (kind === "cancel") yield* Fiber.interruptAll(sent.slice(number % (sent.length + 1)).slice(0, 1))
    else if (kind === "end" && gate !== undefined) yield* Deferred.done(gate, Exit.void)
    else if (kind === "fail" && gate !== undefined) yield* Deferred.fail(gate, new ExecutionFailed({ message: "no" }))
    else if (kind === "die") model.setStatus(instance?.name ?? "", "restarting")
    else if (kind === "revive") model.setStatus(instance?.name ?? "", "available")
    else if (kind === "wait") yield* TestClock.adjust(number % 4)
    else if (kind === "replace") {
      const rest = model.instances.filter((_, index) => index !== number % (model.instances.length + 1))
      if (rest.length > 0) yield* Effect.forkChild(model.scheduler.replaceInstances(rest), { startImmediately: true })
    } else if (kind === "stop" && number % 5 === 0) {
      yield* Effect.forkChild(model.scheduler.stop, { startImmediately: true })
    }
    yield* TestClock.adjust(0)
  })
  for (const each of actions) yield* apply(each)
  for (const { instances, setStatus } of made) for (const { name } of instances) setStatus(name, "available")
  yield* TestClock.adjust(10)
  // A wait for the rate limiter takes some turns of the event loop.
  for (let idleTurns = 0; idleTurns < 5; idleTurns++) {
    for (const gate of running()) {
      yield* Deferred.done(gate, Exit.void)
      idleTurns = 0
    }
    yield* TestClock.adjust(0)
  }
  expect(made.map(({ scheduler }) => scheduler.pending())).toEqual(made.map(() => 0))
  for (const fiber of sent) yield* Fiber.await(fiber)
  expect(used).toEqual({ A: 0, B: 0, C: 0 })
})

/** Counts the units of an instance from the start to the end of each batch. */
const counted = (
  instance: Instance,
  counts: ReadonlyArray<number>,
  use: (counts: ReadonlyArray<number>, sign: number) => void,
): void => {
  const { execute } = instance
  Object.assign(instance, {
    execute: ((batch, settle) => {
      use(counts, 1)
      return execute(batch, (exit) => {
        use(counts, -1)
        settle(exit)
      })
    }) satisfies Instance["execute"],
  })
}

it.effect(
  "no more is used than there is, and every request is answered in the end",
  () =>
    Effect.promise(() =>
      fc.assert(
        fc.asyncProperty(
          fc.array(modelNeeds, { minLength: 1, maxLength: 4 }),
          fc.array(action, { maxLength: 80 }),
          (models, actions) =>
            Effect.runPromise(Effect.provide(Effect.scoped(run(models, actions)), TestClock.layer())),
        ),
        { numRuns: 150 },
      ),
    ),
  60_000,
)
