/**
 * Queue policies, levels and preferred sizes as equations, as in Scheduler.test.ts: what waits while the first request
 * runs, and the batches that it goes in. Time is the test clock's.
 */
import { expect, it } from "@effect/vitest"
import { Effect, Exit, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { ExecutionFailed, type InferenceError } from "../error/InferenceError.ts"
import type { Parameters, Response } from "../request/Request.ts"
import { type QueueingOptions, resolve } from "../model/QueuePolicy.ts"
import * as Fixture from "./Scheduler.fixture.ts"

type Caller = Fiber.Fiber<Response, InferenceError>

/** With one running request; `ask` adds waiting requests, and `ids` lists the batches by request id. */
const harness = Effect.fnUntraced(function* (queueing: QueueingOptions, options: NonNullable<Options> = {}) {
  const made = yield* Fixture.harness({ queueing: resolve("m", queueing), ...options })
  const { send, settle, runs, complete } = made
  // A full batch does not wait.
  yield* send(options.maxBatchSize ?? 4, { id: "first" })
  yield* settle
  const submit = (id: string, parameters: Parameters = {}, rows = 1) => send(rows, { id, parameters })
  const priority = (id: string, level: bigint) => submit(id, { priority: level })
  const ids = () => runs.slice(1).map(({ batch }) => batch.requests.map(({ id }) => id).join("+"))
  /** Ends what runs, again and again, until nothing does. */
  const drain = Effect.gen(function* () {
    for (let index = 0; index < runs.length; index++) yield* complete(index)
  })
  return { ...made, submit, priority, ids, drain }
})

type Options = globalThis.Parameters<typeof Fixture.harness>[0]

const errorOf = (caller: Caller) => Effect.flip(Fiber.join(caller))

const timedOut = { _tag: "QueueTimeout", message: "Request timeout expired" }

const three = { priorities: { levels: 3, default: 2 } }

it.effect("b2 a1 c3 d1 => a,d,b,c: the highest level goes first, each first come first served", () =>
  Effect.gen(function* () {
    const { priority, ids, drain } = yield* harness(three, { maxBatchSize: 1 })
    yield* priority("b2", 2n)
    yield* priority("a1", 1n)
    yield* priority("c3", 3n)
    yield* priority("d1", 1n)
    yield* drain
    expect(ids()).toEqual(["a1", "d1", "b2", "c3"])
  }),
)

it.effect("c3 b2 a1 => a+b+c (max 4): a batch takes from all levels, the highest first", () =>
  Effect.gen(function* () {
    const { priority, ids, drain } = yield* harness(three)
    for (const [id, level] of [
      ["c", 3n],
      ["b", 2n],
      ["a", 1n],
      ["d", 3n],
      ["e", 3n],
    ] as const)
      yield* priority(id, level)
    yield* drain
    expect(ids()).toEqual(["a+b+c+d", "e"])
  }),
)

it.effect("no level, 0, an unknown level or a fraction: the default level", () =>
  Effect.gen(function* () {
    const { submit, ids, drain } = yield* harness(three, { maxBatchSize: 1 })
    yield* submit("last", { priority: 3n })
    yield* submit("none")
    yield* submit("zero", { priority: 0n })
    yield* submit("four", { priority: 4n })
    yield* submit("largest", { priority: 2n ** 64n - 1n })
    yield* submit("negative", { priority: -1n })
    yield* submit("text", { priority: "1" })
    yield* submit("first", { priority: 1n })
    yield* drain
    expect(ids()).toEqual(["first", "none", "zero", "four", "largest", "negative", "text", "last"])
  }),
)

it.effect("distinguishes as many levels as 64 bits have", () =>
  Effect.gen(function* () {
    const max = 2n ** 64n - 1n
    const { submit, priority, ids, drain } = yield* harness(
      { priorities: { levels: max, default: max - 1n } },
      { maxBatchSize: 1 },
    )
    yield* priority("last", max)
    yield* submit("default")
    yield* priority("middle", max - 2n)
    yield* drain
    expect(ids()).toEqual(["middle", "default", "last"])
  }),
)

it.effect("without levels the parameter means nothing", () =>
  Effect.gen(function* () {
    const { priority, ids, drain } = yield* harness({ allowTimeoutOverride: true }, { maxBatchSize: 1 })
    yield* priority("a", 2n)
    yield* priority("b", 1n)
    yield* drain
    expect(ids()).toEqual(["a", "b"])
  }),
)

it.effect("x2 y1 x1: those that share a batch with the highest level go along, ahead of others that are older", () =>
  Effect.gen(function* () {
    const { priority, ids, drain } = yield* harness(three, { groupKey: ({ id }) => id.slice(0, 1) })
    for (const id of ["x2", "y1", "x1", "y3"]) {
      yield* priority(id, BigInt(id.slice(1)))
      yield* TestClock.adjust("1 millis")
    }
    yield* drain
    expect(ids()).toEqual(["y1+y3", "x1+x2"])
  }),
)

it.effect("a request leaves any lane when its caller does", () =>
  Effect.gen(function* () {
    const { priority, ids, drain, statistics, scheduler } = yield* harness(three)
    const callers: Array<Caller> = []
    for (const level of [3n, 1n, 1n, 1n, 2n]) callers.push(yield* priority(`${callers.length}`, level))
    for (const index of [2, 4, 1]) {
      const caller = callers[index]
      if (caller !== undefined) yield* Fiber.interrupt(caller)
    }
    expect(scheduler.pending()).toBe(2)
    yield* drain
    expect(ids()).toEqual(["3+0"])
    expect(statistics.failures.CANCELED).toBe(3)
  }),
)

it.effect("each level has its size limit; a level with a policy has another", () =>
  Effect.gen(function* () {
    const priorities = { levels: 3, default: 2, policies: { 1: { maxQueueSize: 1 } } }
    const { priority, ids, drain, statistics } = yield* harness({ maxQueueSize: 2, priorities })
    const callers = []
    for (const level of [1n, 1n, 2n, 2n, 2n, 3n]) callers.push(yield* priority(`${callers.length}`, level))
    const full = "Exceeds maximum queue size"
    for (const index of [1, 4]) {
      const caller = callers[index]
      if (caller === undefined) throw new Error("There are six callers.")
      expect(yield* errorOf(caller)).toMatchObject({ _tag: "QueueFull", message: `[request id: ${index}] ${full}` })
    }
    yield* drain
    expect(ids()).toEqual(["0+2+3+5"])
    expect(statistics.failures.REJECTED).toBe(2)
  }),
)

it.effect("levels without number have no room without end", () =>
  Effect.gen(function* () {
    const { priority, scheduler } = yield* harness({ maxQueueSize: 2, priorities: { levels: 1000, default: 1 } })
    for (let level = 1n; level <= 200n; level++) yield* priority("", level)
    expect(scheduler.pending()).toBe(128)
  }),
)

it.effect("time over => refused at that moment, though no instance is free", () =>
  Effect.gen(function* () {
    const { submit, ids, drain, scheduler, statistics } = yield* harness({ defaultTimeout: "50 millis" })
    const late = yield* submit("a")
    yield* TestClock.adjust("30 millis")
    yield* submit("b")
    yield* TestClock.adjust("19 millis")
    expect(scheduler.pending()).toBe(2)
    yield* TestClock.adjust("1 millis")
    expect(scheduler.pending()).toBe(1)
    expect(yield* errorOf(late)).toMatchObject(timedOut)
    expect(statistics).toMatchObject({ failures: { REJECTED: 1 }, fail: { count: 1, ns: 50e6 } })
    yield* drain
    expect(ids()).toEqual(["b"])
  }),
)

it.effect("time over in an instance => answered: it is a time in the queue", () =>
  Effect.gen(function* () {
    const { submit, complete } = yield* harness({ defaultTimeout: "50 millis" })
    const caller = yield* submit("a")
    yield* complete(0)
    yield* TestClock.adjust("1 second")
    yield* complete(1)
    expect((yield* Fiber.join(caller)).outputs.length).toBe(1)
  }),
)

it.effect("time over below a millisecond => refused when an instance comes for it", () =>
  Effect.gen(function* () {
    const { submit, ids, drain } = yield* harness({ defaultTimeout: "200 micros" })
    const late = yield* submit("a")
    yield* TestClock.adjust("150 micros")
    yield* submit("b")
    yield* TestClock.adjust("50 micros")
    yield* drain
    expect(ids()).toEqual(["b"])
    expect(yield* errorOf(late)).toMatchObject(timedOut)
  }),
)

it.effect("a shorter time of the request's own counts, a longer one or none does not", () =>
  Effect.gen(function* () {
    const queueing = { defaultTimeout: "50 millis", allowTimeoutOverride: true } as const
    const { submit, scheduler } = yield* harness(queueing)
    const shorter = yield* submit("shorter", { timeout: 10_000n })
    yield* submit("longer", { timeout: 60_000n })
    yield* submit("none", { timeout: 0n })
    yield* submit("text", { timeout: "1" })
    yield* TestClock.adjust("10 millis")
    expect(yield* errorOf(shorter)).toMatchObject(timedOut)
    yield* TestClock.adjust("39 millis")
    expect(scheduler.pending()).toBe(3)
    yield* TestClock.adjust("1 millis")
    expect(scheduler.pending()).toBe(0)
  }),
)

it.effect("a time of the request's own counts where the model has none, and only where the model lets it", () =>
  Effect.gen(function* () {
    const allowing = yield* harness({ allowTimeoutOverride: true })
    const refusing = yield* harness({ defaultTimeout: "50 millis" })
    yield* allowing.submit("a", { timeout: 10_000n })
    yield* allowing.submit("b")
    yield* refusing.submit("c", { timeout: 10_000n })
    yield* TestClock.adjust("10 millis")
    expect([allowing.scheduler.pending(), refusing.scheduler.pending()]).toEqual([1, 1])
    yield* TestClock.adjust("10 days")
    expect([allowing.scheduler.pending(), refusing.scheduler.pending()]).toEqual([1, 0])
  }),
)

it.effect("time over, DELAY => served, behind the others of its level and ahead of lower ones", () =>
  Effect.gen(function* () {
    const policy = { defaultTimeout: "50 millis", timeoutAction: "DELAY", maxQueueSize: 3 } as const
    const { priority, ids, drain, statistics } = yield* harness({ ...three, ...policy }, { maxBatchSize: 1 })
    yield* priority("late", 2n)
    yield* priority("later", 2n)
    yield* priority("lower", 3n)
    yield* TestClock.adjust("50 millis")
    yield* priority("in time", 2n)
    const tooMany = yield* priority("too many", 2n)
    yield* priority("higher", 1n)
    expect(yield* errorOf(tooMany)).toMatchObject({ _tag: "QueueFull" })
    yield* drain
    expect(ids()).toEqual(["higher", "in time", "late", "later", "lower"])
    expect(statistics).toMatchObject({ success: { count: 6 }, failures: { REJECTED: 1 } })
  }),
)

it.effect("one level refuses, another delays, a third has no timeout", () =>
  Effect.gen(function* () {
    const priorities = {
      levels: 3,
      default: 2,
      policies: { 1: { defaultTimeout: "10 millis" }, 3: { maxQueueSize: 5 } },
    } as const
    const policy = { defaultTimeout: "10 millis", timeoutAction: "DELAY" } as const
    const { priority, ids, drain } = yield* harness({ ...policy, priorities }, { maxBatchSize: 1 })
    for (const level of [1n, 2n, 3n]) yield* priority(`${level}`, level)
    yield* TestClock.adjust("10 millis")
    yield* priority("4", 2n)
    yield* drain
    expect(ids()).toEqual(["4", "2", "3"])
  }),
)

it.effect("time over and deadline at once: one answer", () =>
  Effect.gen(function* () {
    const { send, scheduler, statistics } = yield* harness({ defaultTimeout: "50 millis" })
    const caller = yield* send(1, { deadline: 50 })
    yield* TestClock.adjust("50 millis")
    expect(["QueueTimeout", "DeadlineExceeded"]).toContain((yield* errorOf(caller))._tag)
    expect([scheduler.pending(), statistics.failures.REJECTED]).toEqual([0, 1])
  }),
)

it.effect(
  "a1+b1=>crash | c1: the halves of a batch that fails go ahead of any level, and their time is not over again",
  () =>
    Effect.gen(function* () {
      const priorities = { ...three.priorities, policies: { 1: {} } }
      const timed = { defaultTimeout: "10 millis", priorities } as const
      const { priority, ids, complete, statistics } = yield* harness(timed, { bisects: true, maxBatchSize: 2 })
      yield* priority("a", 2n)
      const bad = yield* priority("b", 2n)
      yield* complete(0)
      yield* priority("c", 1n)
      yield* complete(1, Exit.fail(new ExecutionFailed({ message: "no" })))
      yield* TestClock.adjust("9 millis")
      yield* complete(2)
      yield* complete(3, Exit.fail(new ExecutionFailed({ message: "b" })))
      yield* complete(4)
      expect(ids()).toEqual(["a+b", "a", "b", "c"])
      expect(yield* errorOf(bad)).toMatchObject({ message: "b" })
      expect(statistics).toMatchObject({ success: { count: 3 }, failures: { BACKEND: 1, REJECTED: 0 } })
    }),
)

it.effect("stop: what waits is answered, in whatever lane", () =>
  Effect.gen(function* () {
    const callers: Array<Caller> = []
    yield* Effect.scoped(
      Effect.gen(function* () {
        const { priority } = yield* harness({ ...three, defaultTimeout: "1 millis", timeoutAction: "DELAY" })
        callers.push(yield* priority("a", 1n))
        yield* TestClock.adjust("1 millis")
        callers.push(yield* priority("b", 1n), yield* priority("c", 3n))
      }),
    )
    for (const caller of callers) expect(yield* errorOf(caller)).toMatchObject({ _tag: "Unavailable" })
  }),
)

const rows = (
  submit: (id: string, parameters: Parameters, rows: number) => Effect.Effect<Caller>,
  ...all: Array<number>
) => Effect.forEach(all, (count) => submit(String(count), {}, count))

it.effect("3+3 => 3+3+2 (preferred 4 and 8): rows that reach no preferred size wait for those that do", () =>
  Effect.gen(function* () {
    const sizes = { maxBatchSize: 8, preferredBatchSizes: [4, 8], maxQueueDelay: 10e6 }
    const { submit, ids, complete, settle } = yield* harness({}, sizes)
    yield* complete(0)
    yield* rows(submit, 3, 3)
    yield* settle
    expect(ids()).toEqual([])
    yield* rows(submit, 2)
    yield* settle
    expect(ids()).toEqual(["3+3+2"])
  }),
)

it.effect("3+3 => 3,3 (preferred 4, max 8): what would pass every preferred size goes as it is", () =>
  Effect.gen(function* () {
    const sizes = { maxBatchSize: 8, preferredBatchSizes: [4], maxQueueDelay: 10e6 }
    const { submit, ids, complete, settle } = yield* harness({}, sizes)
    yield* complete(0)
    yield* rows(submit, 3, 3)
    yield* settle
    expect(ids()).toEqual(["3"])
    yield* complete(1)
    expect(ids()).toEqual(["3"])
    yield* TestClock.adjust("10 millis")
    expect(ids()).toEqual(["3", "3"])
  }),
)

it.effect("1+1+1+1+1 => 2,2,1 (preferred 2, max 4, no delay): preferred sizes while there are, then what is left", () =>
  Effect.gen(function* () {
    const { submit, ids, drain } = yield* harness({}, { preferredBatchSizes: [2] })
    yield* rows(submit, 1, 1, 1, 1, 1)
    yield* drain
    expect(ids()).toEqual(["1+1", "1+1", "1"])
  }),
)

it.effect("1+1+1 => 3 (preferred 2, max 4): a batch that has waited for the whole delay takes all that waits", () =>
  Effect.gen(function* () {
    const { submit, ids, complete } = yield* harness({}, { preferredBatchSizes: [2], maxQueueDelay: 10e6 })
    yield* rows(submit, 1, 1, 1)
    yield* TestClock.adjust("10 millis")
    yield* complete(0)
    expect(ids()).toEqual(["1+1+1"])
  }),
)

it.effect("the delay is that of the oldest in a batch, whatever its level", () =>
  Effect.gen(function* () {
    const { priority, ids, complete } = yield* harness(three, { maxQueueDelay: 10e6 })
    yield* complete(0)
    yield* priority("low", 3n)
    yield* TestClock.adjust("9 millis")
    yield* priority("high", 1n)
    expect(ids()).toEqual([])
    yield* TestClock.adjust("1 millis")
    expect(ids()).toEqual(["high+low"])
  }),
)

it.effect("a full batch of a lower level does not wait for one of a higher level that does", () =>
  Effect.gen(function* () {
    const options = { maxQueueDelay: 10e6, groupKey: ({ id }: { readonly id: string }) => id, maxBatchSize: 2 }
    const { priority, ids, complete, settle } = yield* harness(three, options)
    yield* complete(0)
    yield* priority("a", 1n)
    yield* priority("b", 3n)
    yield* priority("b", 3n)
    yield* settle
    expect(ids()).toEqual(["b+b"])
    yield* complete(1)
    yield* TestClock.adjust("10 millis")
    expect(ids()).toEqual(["b+b", "a"])
  }),
)

it.effect("timeout while waiting for a batch => refused, and the others continue to wait", () =>
  Effect.gen(function* () {
    const { submit, ids, complete, scheduler } = yield* harness({ defaultTimeout: "5 millis" }, { maxQueueDelay: 10e6 })
    yield* complete(0)
    const late = yield* submit("a")
    yield* TestClock.adjust("4 millis")
    yield* submit("b")
    yield* TestClock.adjust("1 millis")
    expect(yield* errorOf(late)).toMatchObject(timedOut)
    expect([ids(), scheduler.pending()]).toEqual([[], 1])
  }),
)

it.effect("2,000 requests of three levels, some cancelled, some too late: each has one end, and nothing is left", () =>
  Effect.gen(function* () {
    const policy = { defaultTimeout: "40 millis", maxQueueSize: 1000, allowTimeoutOverride: true } as const
    const priorities = { levels: 3, default: 2, policies: { 3: { ...policy, timeoutAction: "DELAY" } } } as const
    const { submit, drain, scheduler, statistics } = yield* harness(
      { ...policy, priorities },
      { groupKey: ({ id }) => id },
    )
    const callers: Array<Caller> = []
    for (let index = 0; index < 2000; index++) {
      const parameters = { priority: BigInt(index % 4), timeout: BigInt(10_000 * (index % 5)) }
      callers.push(yield* submit(String(index % 3), parameters, 1 + (index % 2)))
      if (index % 100 === 99) yield* TestClock.adjust("1 millis")
    }
    yield* Effect.forEach(
      callers.filter((_, index) => index % 7 === 3),
      (caller) => Fiber.interrupt(caller),
    )
    yield* TestClock.adjust("15 millis")
    yield* drain
    expect(callers.every((caller) => caller.pollUnsafe() !== undefined)).toBe(true)
    expect(scheduler.pending()).toBe(0)
    const { REJECTED, CANCELED, BACKEND, OTHER } = statistics.failures
    expect([statistics.success.count + REJECTED + CANCELED, BACKEND, OTHER]).toEqual([2001, 0, 0])
    expect(REJECTED).toBeGreaterThan(0)
  }),
)

const refusal = (queueing: QueueingOptions) => {
  try {
    return resolve("m", queueing)
  } catch (error) {
    return error instanceof TypeError ? error.message : error
  }
}

it.each<readonly [QueueingOptions, string]>([
  [{ maxQueueSize: 0 }, "maxQueueSize must be an integer of at least 1, but 0 was given"],
  [{ defaultTimeout: 0 }, "defaultTimeout must be longer than 0, but 0 was given"],
  [{ priorities: { levels: 0, default: 1 } }, "priorities.levels must be at least 1, but 0 was given"],
  [{ priorities: { levels: 1.5, default: 1 } }, "priorities.levels must be an integer, but 1.5 was given"],
  [{ priorities: { levels: 2, default: 3 } }, "default priority level must be in range [1, 2], but 3 was given"],
  [{ priorities: { levels: 2, default: 0 } }, "default priority level must be in range [1, 2], but 0 was given"],
  [
    { priorities: { levels: 2, default: 1, policies: { 3: {} } } },
    "priority levels for custom queue policies must be in range [1, 2], but 3 was given",
  ],
  [
    { priorities: { levels: 2, default: 1, policies: { 2: { maxQueueSize: 1.5 } } } },
    "maxQueueSize must be an integer of at least 1, but 1.5 was given",
  ],
])("%o is refused", (queueing, text) => {
  expect(refusal(queueing)).toBe(`Model "m": ${text}.`)
})

it("a size alone does not make a policy", () => {
  expect(refusal({ maxQueueSize: 5, timeoutAction: "REJECT", preserveOrdering: false })).toBeUndefined()
})
