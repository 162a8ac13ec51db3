/**
 * Batching as equations: rows that come in = rows of the batches that go out, at most 4 rows a batch. Time is the test
 * clock's; an instance runs each batch until the test lets it go.
 */
import { expect, it } from "@effect/vitest"
import { Clock, Duration, Effect, Exit, Fiber, Logger, Result, Scope } from "effect"
import { TestClock } from "effect/testing"
import { ExecutionFailed, type InferenceError } from "../error/InferenceError.ts"
import { noParameters, type Response } from "../request/Request.ts"
import { TimerTick } from "./AlarmClock.ts"
import type { QueueHooks } from "./Scheduler.ts"
import { harness, request } from "./Scheduler.fixture.ts"

const rowsOf = (response: Response) => response.outputs[0]?.shape

it.effect("2 => 2 at once: a free instance does not wait", () =>
  Effect.gen(function* () {
    const { send, settle, sizes, complete } = yield* harness()
    const caller = yield* send(2)
    yield* settle
    expect(sizes()).toEqual(["2"])
    yield* complete(0)
    expect(rowsOf(yield* Fiber.join(caller))).toEqual([2])
  }),
)

it.effect("1 | 2+2=4: what queues while an instance is busy goes as one batch, and each caller gets its rows", () =>
  Effect.gen(function* () {
    const { send, settle, sizes, complete, statistics } = yield* harness()
    yield* send(1)
    yield* settle
    const first = yield* send(2)
    const second = yield* send(2)
    yield* complete(0)
    expect(sizes()).toEqual(["1", "2+2"])
    yield* complete(1)
    expect(rowsOf(yield* Fiber.join(first))).toEqual([2])
    expect(rowsOf(yield* Fiber.join(second))).toEqual([2])
    expect(statistics).toMatchObject({ executionCount: 2, inferenceCount: 5, success: { count: 3 } })
    expect([...statistics.batches.keys()]).toEqual([1, 4])
  }),
)

it.effect("1 | 2+2=4, traced: the moments of each request, the parts of its batch back to back up to its end", () =>
  Effect.gen(function* () {
    const { send, settle, complete } = yield* harness({
      wrap: (execute) => (batch, settle) =>
        execute(batch, (exit) =>
          settle(Exit.map(exit, (execution) => ({ ...execution, inputDuration: 2e6, outputDuration: 3e6 }))),
        ),
    })
    const started = yield* Effect.clockWith((clock) => Effect.succeed(Number(clock.monotonicTimeNanosUnsafe())))
    const points: Array<readonly [string, number]> = []
    const trace = { at: (point: string, nanos: number) => void points.push([point, (nanos - started) / 1e6]) }
    yield* send(1)
    yield* settle
    yield* TestClock.adjust(10)
    yield* send(2, { trace })
    yield* send(2)
    yield* TestClock.adjust(20)
    yield* complete(0)
    yield* TestClock.adjust(40)
    yield* complete(1)
    expect(points).toEqual([
      ["QUEUE_START", 10],
      ["COMPUTE_START", 30],
      ["COMPUTE_INPUT_END", 32],
      ["COMPUTE_OUTPUT_START", 67],
      ["COMPUTE_END", 70],
    ])
  }),
)

it.effect("1=>crash, traced: the duration is recorded", () =>
  Effect.gen(function* () {
    const { send, settle, complete } = yield* harness()
    const points: Array<string> = []
    yield* send(1, { trace: { at: (point) => void points.push(point) } })
    yield* settle
    yield* complete(0, Exit.fail(new ExecutionFailed({ message: "broken" })))
    expect(points).toEqual(["QUEUE_START", "COMPUTE_START", "COMPUTE_END"])
  }),
)

it.effect("1 | 3+2=3,2 (max 4): a request is never torn apart", () =>
  Effect.gen(function* () {
    const { send, settle, sizes, complete } = yield* harness()
    yield* send(1)
    yield* settle
    yield* send(3)
    yield* send(2)
    yield* complete(0)
    yield* complete(1)
    expect(sizes()).toEqual(["1", "3", "2"])
  }),
)

it.effect("1 | 1+1+1+1+1=4,1: no batch is larger than the maximum", () =>
  Effect.gen(function* () {
    const { send, settle, sizes, complete } = yield* harness()
    yield* send(1)
    yield* settle
    yield* Effect.forEach([1, 1, 1, 1, 1], (rows) => send(rows))
    yield* complete(0)
    yield* complete(1)
    expect(sizes()).toEqual(["1", "1+1+1+1", "1"])
  }),
)

it.effect("2=>1+timeout: after the delay a batch goes with what there is", () =>
  Effect.gen(function* () {
    const { send, settle, sizes } = yield* harness({ maxQueueDelay: 10e6 })
    yield* send(1)
    yield* settle
    yield* TestClock.adjust("9 millis")
    expect(sizes()).toEqual([])
    yield* TestClock.adjust("1 millis")
    expect(sizes()).toEqual(["1"])
  }),
)

/** Makes a scheduler whose timers count whole milliseconds of the test clock, and ring this much earlier. */
const coarse = <A, E, R>(scheduler: Effect.Effect<A, E, R>, early = 0) =>
  Effect.clockWith((clock) =>
    scheduler.pipe(
      Effect.provideService(TimerTick, 1),
      Effect.provideService(Clock.Clock, {
        currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe(),
        currentTimeMillis: clock.currentTimeMillis,
        currentTimeNanosUnsafe: () => clock.currentTimeNanosUnsafe(),
        currentTimeNanos: clock.currentTimeNanos,
        monotonicTimeNanosUnsafe: () => clock.monotonicTimeNanosUnsafe(),
        monotonicTimeNanos: clock.monotonicTimeNanos,
        sleep: (duration) => clock.sleep(Duration.millis(Math.trunc(Duration.toMillis(duration)) - early)),
      }),
    ),
  )

it.effect("2=>1+timeout, by timers of whole milliseconds: a delay ends less than one later, never earlier", () =>
  Effect.gen(function* () {
    const { send, settle, sizes } = yield* coarse(harness({ maxQueueDelay: 2.3e6 }))
    yield* send(1)
    yield* settle
    yield* TestClock.adjust("2900 micros")
    expect(sizes()).toEqual([])
    yield* TestClock.adjust("100 micros")
    expect(sizes()).toEqual(["1"])
  }),
)

it.effect("2=>1+timeout, by a timer that rings early: the rest of the delay is waited for", () =>
  Effect.gen(function* () {
    const { send, settle, sizes } = yield* coarse(harness({ maxQueueDelay: 2e6 }), 0.4)
    yield* send(1)
    yield* settle
    yield* TestClock.adjust("1600 micros")
    expect(sizes()).toEqual([])
    // The next timer of a millisecond rings after 0.6.
    yield* TestClock.adjust("500 micros")
    expect(sizes()).toEqual([])
    yield* TestClock.adjust("100 micros")
    expect(sizes()).toEqual(["1"])
  }),
)

/** A queue that counts how often it is asked for a batch. */
const countingQueue = () => {
  const count = { decisions: 0 }
  const makeQueue = ({ makeDefault }: QueueHooks) => {
    const queue = makeDefault()
    const decide = queue.decide.bind(queue)
    queue.decide = (...args) => {
      count.decisions += 1
      return decide(...args)
    }
    return queue
  }
  return { count, makeQueue }
}

it.effect("2=>1+timeout: waiting takes no turns of the event loop", () =>
  Effect.gen(function* () {
    const { count, makeQueue } = countingQueue()
    const { send, settle, sizes } = yield* coarse(harness({ maxQueueDelay: 2e6, makeQueue }))
    yield* send(1)
    yield* settle
    const { decisions } = count
    for (const _ of Array(100)) yield* settle
    yield* TestClock.adjust("1900 micros")
    for (const _ of Array(100)) yield* settle
    expect(count.decisions).toBe(decisions)
    yield* TestClock.adjust("100 micros")
    expect(sizes()).toEqual(["1"])
  }),
)

it.effect("1+1=>2+timeout: a request that joins a waiting batch does not prolong its delay", () =>
  Effect.gen(function* () {
    const { send, settle, sizes } = yield* coarse(harness({ maxQueueDelay: 4e6 }))
    yield* send(1)
    yield* settle
    yield* TestClock.adjust("3 millis")
    yield* send(1)
    yield* settle
    expect(sizes()).toEqual([])
    yield* TestClock.adjust("1 millis")
    expect(sizes()).toEqual(["1+1"])
  }),
)

it.live("2=>1+timeout below a quarter of a millisecond: a delay is not rounded up to what timers can do", () =>
  Effect.gen(function* () {
    const outcomes = [Result.succeed({ outputs: [], parameters: noParameters })]
    const { send } = yield* harness({
      maxQueueDelay: 0.2e6,
      wrap: () => (_, settle) => {
        settle(Exit.succeed({ outcomes, inputDuration: 0, outputDuration: 0 }))
        return () => {}
      },
    })
    const waited: Array<number> = []
    for (let round = 0; round < 20; round++) {
      const started = performance.now()
      yield* Fiber.join(yield* send(1))
      waited.push(performance.now() - started)
    }
    // The best of them: the machine may be busy, but no timer is ever below 1.
    expect(Math.min(...waited)).toBeGreaterThanOrEqual(0.2)
    expect(Math.min(...waited)).toBeLessThan(1)
  }),
)

it.effect("2=>2=>4: a full batch does not wait for the delay", () =>
  Effect.gen(function* () {
    const { send, settle, sizes } = yield* harness({ maxQueueDelay: 10e6 })
    yield* send(2)
    yield* settle
    yield* TestClock.adjust("5 millis")
    yield* send(2)
    yield* settle
    expect(sizes()).toEqual(["2+2"])
  }),
)

it.effect("1+1=>2 (preferred 2): a preferred size does not wait for the delay", () =>
  Effect.gen(function* () {
    const { send, settle, sizes } = yield* harness({ maxQueueDelay: 10e6, preferredBatchSizes: [2] })
    yield* send(1)
    yield* settle
    expect(sizes()).toEqual([])
    yield* send(1)
    yield* settle
    expect(sizes()).toEqual(["1+1"])
  }),
)

it.effect("1 | 1+1+1=2,1 (preferred 2): the largest preferred size that is reached goes first", () =>
  Effect.gen(function* () {
    const { send, sizes, complete } = yield* harness({ maxQueueDelay: 10e6, preferredBatchSizes: [2] })
    yield* send(1)
    yield* TestClock.adjust("10 millis")
    yield* Effect.forEach([1, 1, 1], (rows) => send(rows))
    yield* complete(0)
    expect(sizes()).toEqual(["1", "1+1"])
    yield* complete(1)
    yield* TestClock.adjust("10 millis")
    expect(sizes()).toEqual(["1", "1+1", "1"])
  }),
)

it.effect("1 | a+b+a=2,1: only requests that agree share a batch, the oldest goes first", () =>
  Effect.gen(function* () {
    const { send, settle, runs, complete } = yield* harness({ groupKey: ({ id }) => id })
    yield* send(1, { id: "x" })
    yield* settle
    yield* send(1, { id: "a" })
    yield* send(1, { id: "b" })
    yield* send(1, { id: "a" })
    yield* complete(0)
    yield* complete(1)
    expect(runs.map(({ batch }) => batch.requests.map(({ id }) => id))).toEqual([["x"], ["a", "a"], ["b"]])
  }),
)

it.effect("1,1 on two instances: both work at the same time", () =>
  Effect.gen(function* () {
    const { send, settle, runs } = yield* harness({ instanceCount: 2 })
    yield* send(1)
    yield* settle
    yield* send(1)
    yield* settle
    expect(runs.map(({ instance }) => instance)).toEqual(["m_0_0", "m_0_1"])
  }),
)

it.effect("1,1,1 on one instance of concurrency 2: two are in flight, the third waits", () =>
  Effect.gen(function* () {
    const { scheduler, send, settle, sizes } = yield* harness({ concurrency: 2 })
    for (const rows of [1, 1, 1]) {
      yield* send(rows)
      yield* settle
    }
    expect(sizes()).toEqual(["1", "1"])
    expect(scheduler.pending()).toBe(1)
  }),
)

it.effect("cancel in queue: an interrupted caller's request leaves at once", () =>
  Effect.gen(function* () {
    const { scheduler, send, settle, sizes, complete, statistics } = yield* harness()
    yield* send(1)
    yield* settle
    const cancelled = yield* send(2)
    const kept = yield* send(3)
    expect(scheduler.pending()).toBe(2)
    yield* Fiber.interrupt(cancelled)
    expect(scheduler.pending()).toBe(1)
    yield* complete(0)
    yield* complete(1)
    expect(sizes()).toEqual(["1", "3"])
    expect(rowsOf(yield* Fiber.join(kept))).toEqual([3])
    expect(statistics.failures.CANCELED).toBe(1)
  }),
)

it.effect(
  "cancel in an instance: the batch is interrupted once all its requests are cancelled, and the instance is free",
  () =>
    Effect.gen(function* () {
      const { send, settle, sizes } = yield* harness()
      const only = yield* send(1)
      yield* settle
      yield* Fiber.interrupt(only)
      yield* send(2)
      yield* settle
      expect(sizes()).toEqual(["1", "2"])
    }),
)

it.effect("expired in queue: a request whose deadline passes leaves at once with DeadlineExceeded", () =>
  Effect.gen(function* () {
    const { scheduler, send, settle, statistics } = yield* harness()
    yield* send(1)
    yield* settle
    const late = yield* send(1, { deadline: 50 })
    const patient = yield* send(1, { deadline: 500 })
    yield* settle
    yield* TestClock.adjust("49 millis")
    expect(scheduler.pending()).toBe(2)
    yield* TestClock.adjust("1 millis")
    expect(scheduler.pending()).toBe(1)
    expect(yield* Effect.flip(Fiber.join(late))).toMatchObject({ _tag: "DeadlineExceeded" })
    expect(statistics.failures.REJECTED).toBe(1)
    expect(patient.pollUnsafe()).toBeUndefined()
  }),
)

it.effect("expired in an instance: the caller is answered, the rest of the batch goes on", () =>
  Effect.gen(function* () {
    const { send, settle, complete } = yield* harness()
    yield* send(1)
    yield* settle
    const late = yield* send(1, { deadline: 50 })
    const patient = yield* send(2)
    yield* complete(0)
    yield* TestClock.adjust("50 millis")
    expect(yield* Effect.flip(Fiber.join(late))).toMatchObject({ _tag: "DeadlineExceeded" })
    yield* complete(1)
    expect(rowsOf(yield* Fiber.join(patient))).toEqual([2])
  }),
)

it.effect("expired on arrival: refused without a place in the queue", () =>
  Effect.gen(function* () {
    const { scheduler, send } = yield* harness()
    yield* TestClock.adjust("1 second")
    expect(yield* Effect.flip(Fiber.join(yield* send(1, { deadline: 999 })))).toMatchObject({
      _tag: "DeadlineExceeded",
    })
    expect(scheduler.pending()).toBe(0)
  }),
)

it.effect("full=>refused: one more than the queue holds is refused at once, and counted", () =>
  Effect.gen(function* () {
    const { send, settle, complete, statistics } = yield* harness({ maxQueueSize: 2 })
    yield* send(1)
    yield* settle
    const queued = [yield* send(1), yield* send(1)]
    const error = yield* Effect.flip(Fiber.join(yield* send(1, { id: "7" })))
    expect(error).toMatchObject({ _tag: "QueueFull", message: "[request id: 7] Exceeds maximum queue size" })
    expect(statistics.failures.REJECTED).toBe(1)
    yield* complete(0)
    yield* complete(1)
    for (const fiber of queued) expect(rowsOf(yield* Fiber.join(fiber))).toEqual([1])
  }),
)

it.effect("1 | 2+2=>crash | 1: a failing batch fails its own requests and no other", () =>
  Effect.gen(function* () {
    const { send, settle, complete, statistics } = yield* harness()
    const before = yield* send(1)
    yield* settle
    const failing = [yield* send(2), yield* send(2)]
    yield* complete(0)
    const after = yield* send(1)
    yield* complete(1, Exit.fail(new ExecutionFailed({ message: "no" })))
    yield* complete(2)
    for (const fiber of failing) {
      expect(yield* Effect.flip(Fiber.join(fiber))).toMatchObject({ _tag: "ExecutionFailed", message: "no" })
    }
    expect(rowsOf(yield* Fiber.join(before))).toEqual([1])
    expect(rowsOf(yield* Fiber.join(after))).toEqual([1])
    expect(statistics).toMatchObject({ executionCount: 2, success: { count: 2 }, failures: { BACKEND: 2 } })
  }),
)

it.effect("1=>defect | 1: a bug in a handler is an error of its batch, without its internals", () =>
  Effect.gen(function* () {
    const { send, settle, complete } = yield* harness()
    const first = yield* send(1)
    yield* settle
    yield* complete(0, Exit.die(new Error("secret")))
    const error = yield* Effect.flip(Fiber.join(first))
    expect(error._tag).toBe("ExecutionFailed")
    expect(error.message).not.toContain("secret")
    const second = yield* send(1)
    yield* settle
    yield* complete(1)
    expect(rowsOf(yield* Fiber.join(second))).toEqual([1])
  }),
)

it.effect("1=>throw | 1: an instance that throws fails that batch, and the dispatcher goes on", () =>
  Effect.gen(function* () {
    let calls = 0
    const { send, settle, complete } = yield* harness({
      groupKey: () => "",
      wrap: (execute) => (batch, settle) => {
        calls += 1
        if (calls === 1) throw new RangeError("out of bounds")
        return execute(batch, settle)
      },
    })
    const error = yield* Effect.flip(Fiber.join(yield* send(1)))
    expect(error).toMatchObject({ _tag: "ExecutionFailed" })
    const second = yield* send(1)
    yield* settle
    yield* complete(0)
    expect(rowsOf(yield* Fiber.join(second))).toEqual([1])
  }),
)

it.effect("1+1=>throw | 1: a caller that throws at its answer keeps back neither other answers nor the instance", () =>
  Effect.gen(function* () {
    const logged: Array<unknown> = []
    const log = Logger.make(({ message }) => logged.push([message].flat(2)[0]))
    yield* Effect.gen(function* () {
      const { scheduler, send, settle, complete, sizes } = yield* harness()
      const refuses = () => {
        throw new RangeError("a bug of a caller")
      }
      const first = yield* send(1)
      yield* settle
      scheduler.submit(request(1), refuses)
      scheduler.submit(request(1, { deadline: 10 }), refuses)
      const second = yield* send(2)
      yield* TestClock.adjust(10)
      yield* complete(0)
      expect(rowsOf(yield* Fiber.join(first))).toEqual([1])
      yield* complete(1)
      expect(rowsOf(yield* Fiber.join(second))).toEqual([2])
      const third = yield* Effect.flip(Fiber.join(yield* send(3, { deadline: 10 })))
      expect(third._tag).toBe("DeadlineExceeded")
      const last = yield* send(4)
      yield* settle
      yield* complete(2)
      expect(rowsOf(yield* Fiber.join(last))).toEqual([4])
      expect(sizes()).toEqual(["1", "1+2", "4"])
    }).pipe(Effect.provide(Logger.layer([log])))
    expect(logged).toEqual(Array.from({ length: 2 }, () => "A response callback of model 'm' failed"))
  }),
)

it.effect("restarting: an instance that is not available gets nothing until it is back", () =>
  Effect.gen(function* () {
    const { scheduler, send, settle, sizes, setStatus } = yield* harness()
    setStatus("m_0_0", "restarting")
    yield* send(1)
    yield* settle
    expect(sizes()).toEqual([])
    expect(scheduler.isReady()).toBe(false)
    setStatus("m_0_0", "available")
    yield* settle
    expect(sizes()).toEqual(["1"])
    expect(scheduler.isReady()).toBe(true)
  }),
)

it.effect("failed: when the last instance has given up, queued and new requests are refused", () =>
  Effect.gen(function* () {
    const { send, settle, setStatus } = yield* harness()
    setStatus("m_0_0", "restarting")
    const queued = yield* send(1)
    yield* settle
    setStatus("m_0_0", "failed")
    yield* settle
    expect(yield* Effect.flip(Fiber.join(queued))).toMatchObject({ _tag: "ModelNotReady" })
    expect(yield* Effect.flip(Fiber.join(yield* send(1)))).toMatchObject({ _tag: "ModelNotReady" })
  }),
)

it.effect("stop: queued requests and running batches are answered as unavailable", () =>
  Effect.gen(function* () {
    const callers: Array<Fiber.Fiber<Response, InferenceError>> = []
    yield* Effect.scoped(
      Effect.gen(function* () {
        const { send, settle } = yield* harness()
        callers.push(yield* send(1))
        yield* settle
        callers.push(yield* send(1))
        yield* settle
      }),
    )
    for (const caller of callers) {
      expect(yield* Effect.flip(Fiber.join(caller))).toMatchObject({ _tag: "Unavailable" })
    }
  }),
)

it.effect("stop of an instance that cannot be interrupted: its batch ends, and is answered", () =>
  Effect.gen(function* () {
    const scope = yield* Scope.make()
    const { send, settle, complete } = yield* Scope.provide(harness({ interruptible: false }), scope)
    const caller = yield* send(2)
    yield* settle
    const stopped = yield* Effect.forkChild(Scope.close(scope, Exit.void), { startImmediately: true })
    yield* settle
    expect(stopped.pollUnsafe()).toBeUndefined()
    yield* complete(0)
    expect(rowsOf(yield* Fiber.join(caller))).toEqual([2])
    yield* Fiber.join(stopped)
  }),
)

it.effect("stop: a batch that ignores its interruption ends with the interrupt timeout of its instance", () =>
  Effect.gen(function* () {
    const scope = yield* Scope.make()
    const options = { interruptible: false, interruptTimeout: 1000 }
    const { send, settle, complete } = yield* Scope.provide(harness(options), scope)
    const caller = yield* send(2)
    yield* settle
    const stopped = yield* Effect.forkChild(Scope.close(scope, Exit.void), { startImmediately: true })
    yield* TestClock.adjust(999)
    expect([stopped.pollUnsafe(), caller.pollUnsafe()]).toEqual([undefined, undefined])
    yield* TestClock.adjust(1)
    yield* Fiber.join(stopped)
    expect(yield* Effect.flip(Fiber.join(caller))).toMatchObject({ _tag: "Unavailable" })
    // Its end has no effect any more.
    yield* complete(0)
  }),
)

it.effect("stop: the interrupt timeout begins when the last caller leaves", () =>
  Effect.gen(function* () {
    const scope = yield* Scope.make()
    const options = { interruptible: false, interruptTimeout: 1000 }
    const { send, settle } = yield* Scope.provide(harness(options), scope)
    const caller = yield* send(2)
    yield* settle
    yield* Fiber.interrupt(caller)
    yield* TestClock.adjust(900)
    const stopped = yield* Effect.forkChild(Scope.close(scope, Exit.void), { startImmediately: true })
    yield* TestClock.adjust(99)
    expect(stopped.pollUnsafe()).toBeUndefined()
    yield* TestClock.adjust(1)
    yield* Fiber.join(stopped)
  }),
)

it.effect("1,000 requests of 1 to 4 rows, some cancelled: every other one gets its own rows back", () =>
  Effect.gen(function* () {
    const { send, runs, complete, statistics } = yield* harness({ instanceCount: 2, maxQueueSize: 1000 })
    const callers: Array<{ readonly rows: number; readonly fiber: Fiber.Fiber<Response, InferenceError> }> = []
    for (let index = 0; index < 1000; index++) {
      const rows = 1 + (index % 4)
      callers.push({ rows, fiber: yield* send(rows) })
    }
    const kept = callers.filter((_, index) => index % 7 !== 3)
    yield* Effect.forEach(
      callers.filter((_, index) => index % 7 === 3),
      ({ fiber }) => Fiber.interrupt(fiber),
    )
    for (let index = 0; index < runs.length || index === 0; index++) yield* complete(index)
    for (const { rows, fiber } of kept) expect(rowsOf(yield* Fiber.join(fiber))).toEqual([rows])
    for (const { batch } of runs) expect(batch.rows).toBeLessThanOrEqual(4)
    expect(statistics.success.count).toBe(kept.length)
  }),
)

it.effect("responses behind the end of their request go nowhere and are not counted", () =>
  Effect.gen(function* () {
    const emitted: Array<Response> = []
    const response: Response = { outputs: [], parameters: noParameters }
    const { scheduler, settle, runs, complete, statistics } = yield* harness({ interruptible: false })
    const emit = (each: Response) => Effect.sync(() => void emitted.push(each))
    const cancel = scheduler.submit(request(1, { emit }), () => {})
    yield* settle
    const emitting = runs[0]?.batch.requests[0]?.emit
    if (emitting === undefined) throw new Error("The request has nowhere to emit to.")
    yield* emitting(response)
    cancel()
    yield* emitting(response)
    yield* complete(0)
    expect(emitted.length).toBe(1)
    expect([...statistics.responses].map(([index, { success }]) => [index, success.count])).toEqual([
      [0, 1],
      [1, 0],
    ])
  }),
)

it.effect(
  "a response that cannot be sent, or that the caller leaves untaken, is the one that the request ends with",
  () =>
    Effect.gen(function* () {
      const response: Response = { outputs: [], parameters: noParameters }
      const { scheduler, settle, runs, complete, statistics } = yield* harness({ instanceCount: 2 })
      const infer = (second: Effect.Effect<void, InferenceError>) => {
        let emitted = 0
        const emit = () => Effect.suspend(() => (emitted++ === 0 ? Effect.void : second))
        return scheduler.submit(request(1, { emit }), () => {})
      }
      const reply = (index: number) => {
        const emit = runs[index]?.batch.requests[0]?.emit
        if (emit === undefined) throw new Error("The request has nowhere to emit to.")
        return Effect.andThen(emit(response), emit(response))
      }
      infer(Effect.fail(new ExecutionFailed({ message: "no JSON form" })))
      yield* settle
      yield* complete(0, yield* Effect.exit(reply(0)))
      const left = infer(Effect.never)
      yield* settle
      const pending = yield* Effect.forkChild(reply(1), { startImmediately: true })
      left()
      yield* Fiber.interrupt(pending)
      const counts = [...statistics.responses].map(([index, { success, fail, cancel }]) =>
        [success, fail, cancel].map(({ count }) => count).concat(index),
      )
      expect(counts).toEqual([
        [2, 0, 0, 0],
        [0, 1, 1, 1],
      ])
    }),
)

it.effect("is drained once all it has accepted is answered, failed or taken back", () =>
  Effect.gen(function* () {
    const { scheduler, send, settle, complete } = yield* harness()
    yield* scheduler.drained
    const running = yield* send(1)
    yield* settle
    const queued = yield* send(1)
    yield* settle
    const drained = yield* Effect.forkChild(scheduler.drained, { startImmediately: true })
    yield* complete(0, Exit.fail(new ExecutionFailed({ message: "broken" })))
    yield* Fiber.await(running)
    expect(drained.pollUnsafe()).toBeUndefined()
    yield* Fiber.interrupt(queued)
    yield* Fiber.join(drained)
    yield* scheduler.drained
  }),
)
