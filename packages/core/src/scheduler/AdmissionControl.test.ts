/** Refusals of a scheduler by predicted completion, on the test clock. Batches take 10 ms, of up to four rows. */
import { expect, it } from "@effect/vitest"
import { Duration, Effect, Exit, Fiber, Result } from "effect"
import { TestClock } from "effect/testing"
import { ExecutionFailed } from "../error/InferenceError.ts"
import { plain } from "../model/QueuePolicy.ts"
import { harness, type HarnessOptions } from "./Scheduler.fixture.ts"

const taught = Effect.fnUntraced(function* (options: HarnessOptions = {}) {
  const all = yield* harness(options)
  for (let run = 0; run < 4; run++) {
    const fiber = yield* all.send(4)
    yield* all.settle
    yield* TestClock.adjust("10 millis")
    yield* all.complete(run)
    yield* Fiber.join(fiber)
  }
  return { ...all, now: 40 }
})

it.effect("refuses a request on arrival that would be late, and keeps one that is in time", () =>
  Effect.gen(function* () {
    const { send, settle, complete, statistics, now } = yield* taught()
    yield* send(4)
    yield* settle
    yield* send(4)
    // 10 ms of the running batch, 10 of the queued one, 10 of its own.
    const late = yield* Effect.flip(Fiber.join(yield* send(1, { deadline: now + 25, id: "7" })))
    expect(late).toMatchObject({
      _tag: "QueueFull",
      message:
        "[request id: 7] The queue is too long to answer in time: an answer is expected in 30 ms, and 25 ms are left",
      retryAfter: 5,
    })
    expect(statistics.queueRefusals).toEqual({ full: 0, predicted: 1, timeout: 0, deadline: 0 })
    const kept = yield* send(1, { deadline: now + 35 })
    for (const run of [4, 5, 6]) {
      yield* TestClock.adjust("10 millis")
      yield* complete(run)
    }
    expect(yield* Fiber.join(kept)).toBeDefined()
    expect(statistics.failures.REJECTED).toBe(1)
  }),
)

it.effect("refuses nothing without a deadline, while an instance is free, and before four batches have ended", () =>
  Effect.gen(function* () {
    const untaught = yield* harness()
    for (let count = 0; count < 20; count++) yield* untaught.send(4, { deadline: 1 })
    expect(untaught.statistics.queueRefusals.predicted).toBe(0)
    const { send, settle, statistics, now } = yield* taught()
    yield* send(1, { deadline: now + 1 })
    yield* settle
    for (let count = 0; count < 20; count++) yield* send(4)
    expect(statistics.queueRefusals.predicted).toBe(0)
  }),
)

it.effect("refuses a request without a deadline that would exceed the latency target", () =>
  Effect.gen(function* () {
    const { send, settle, complete, sizes, statistics } = yield* taught({ latencyTarget: 25e6 })
    yield* send(4)
    yield* settle
    const kept = yield* send(4)
    const refused = yield* Effect.flip(Fiber.join(yield* send(1)))
    expect(refused).toMatchObject({
      _tag: "QueueFull",
      message: expect.stringContaining("an answer is expected in 30 ms, and 25 ms are the latency target"),
      retryAfter: 5,
    })
    expect(statistics.queueRefusals.predicted).toBe(1)
    // A request that was admitted is executed, however late.
    yield* TestClock.adjust("100 millis")
    yield* complete(4)
    expect(sizes().at(-1)).toBe("4")
    yield* complete(5)
    yield* Fiber.join(kept)
  }),
)

it.effect("refuses a request before it has arrived completely, and counts it", () =>
  Effect.gen(function* () {
    const { scheduler, send, settle, statistics, now } = yield* taught()
    yield* send(4)
    yield* settle
    expect(scheduler.preview?.(now + 15, {})).toMatchObject({ _tag: "QueueFull", retryAfter: 5 })
    expect(scheduler.preview?.(now + 25, {})).toBeUndefined()
    expect(scheduler.preview?.(undefined, {})).toBeUndefined()
    expect(statistics.queueRefusals.predicted).toBe(1)
    expect(statistics.failures.REJECTED).toBe(1)
  }),
)

it.effect("refuses a request for a full queue before it has arrived completely, and counts it", () =>
  Effect.gen(function* () {
    const { scheduler, send, settle, statistics } = yield* taught({ maxQueueSize: 3 })
    const [heavy, light] = [{}, {}]
    yield* send(4, { connection: heavy })
    yield* settle
    for (let count = 0; count < 2; count++) yield* send(4, { connection: heavy })
    const preview = (connection: object, id: string | undefined) => scheduler.preview?.(undefined, connection, () => id)
    expect(preview(heavy, "")).toBeUndefined()
    yield* send(4, { connection: heavy })
    const refusal = preview(heavy, "")
    // 10 ms for each of three batches, and the next of the round delays.
    const message = "[request id: <id_unknown>] Exceeds maximum queue size"
    expect(refusal).toMatchObject({ _tag: "QueueFull", message, retryAfter: 50 })
    expect(preview(heavy, "")).toBe(refusal)
    expect(preview(heavy, "7")).toMatchObject({ message: "[request id: 7] Exceeds maximum queue size", retryAfter: 30 })
    // Its message needs the id.
    expect(preview(heavy, undefined)).toBeUndefined()
    // It takes the place of another one.
    expect(preview(light, "")).toBeUndefined()
    expect(statistics.queueRefusals.full).toBe(3)
    expect(statistics.failures.REJECTED).toBe(3)
  }),
)

it.effect("does not judge an incomplete request by a queue with priorities", () =>
  Effect.gen(function* () {
    const { scheduler, send, settle, now } = yield* taught({
      queueing: { ...plain(100), priorityLevels: 2n, defaultPriorityLevel: 2n },
    })
    yield* send(4)
    yield* settle
    expect(scheduler.preview?.(now + 1, {})).toBeUndefined()
  }),
)

it.effect("a deadline counts more than the latency target", () =>
  Effect.gen(function* () {
    const { send, settle, statistics, now } = yield* taught({ latencyTarget: 5e6 })
    yield* send(4)
    yield* settle
    yield* send(4, { deadline: now + 60 })
    expect(statistics.queueRefusals.predicted).toBe(0)
  }),
)

it.effect("refuses a request without a deadline for which callers would not wait, once many have left", () =>
  Effect.gen(function* () {
    const { send, settle, statistics } = yield* taught()
    const sendAll = () => Effect.all(Array.from({ length: 60 }, () => send(4)))
    const first = yield* send(4)
    yield* settle
    const patient = yield* sendAll()
    expect(statistics.queueRefusals.predicted).toBe(0)
    yield* TestClock.adjust("25 millis")
    yield* Effect.forEach(patient, Fiber.interrupt)
    // The running batch ends now, as it seems, and the two queued ones after 10 and 20 ms.
    yield* send(4)
    yield* send(4)
    expect(statistics.queueRefusals.predicted).toBe(0)
    const refused = yield* Effect.flip(Fiber.join(yield* send(4)))
    expect(refused).toMatchObject({
      _tag: "QueueFull",
      message: expect.stringContaining("an answer is expected in 30 ms, and 22.5 ms are what callers wait for"),
    })
    yield* Fiber.interrupt(first)
  }),
)

it.effect("drops what can no longer be in time when an instance takes a batch", () =>
  Effect.gen(function* () {
    const { send, settle, complete, sizes, statistics, now } = yield* taught()
    yield* send(4)
    yield* settle
    const dropped = yield* send(1, { deadline: now + 21 })
    const kept = yield* send(2, { deadline: now + 40 })
    // The running batch takes 15 ms and not 10, so that a batch of 10 ms is too late for the first one.
    yield* TestClock.adjust("15 millis")
    yield* complete(4)
    expect(yield* Effect.flip(Fiber.join(dropped))).toMatchObject({ _tag: "QueueFull" })
    expect(sizes().at(-1)).toBe("2")
    expect(statistics.queueRefusals.predicted).toBe(1)
    yield* TestClock.adjust("10 millis")
    yield* complete(5)
    yield* Fiber.join(kept)
  }),
)

it.effect("executes one request even if all are too late, and so learns that it has become faster", () =>
  Effect.gen(function* () {
    const { send, settle, complete, sizes, now } = yield* taught()
    yield* send(4)
    yield* settle
    const first = yield* send(1, { deadline: now + 20 })
    const last = yield* send(1, { deadline: now + 21 })
    yield* TestClock.adjust("15 millis")
    yield* complete(4)
    expect(sizes().at(-1)).toBe("1")
    yield* TestClock.adjust("1 millis")
    yield* complete(5)
    expect((yield* Effect.exit(Fiber.join(first)))._tag).toBe("Failure")
    expect((yield* Effect.exit(Fiber.join(last)))._tag).toBe("Success")
  }),
)

const plainQueueing = plain(100)

it.effect("a request of a higher level does not wait for those of a lower one", () =>
  Effect.gen(function* () {
    const { send, settle, statistics, now } = yield* taught({
      queueing: { ...plainQueueing, priorityLevels: 2n, defaultPriorityLevel: 2n },
    })
    yield* send(4)
    yield* settle
    for (let count = 0; count < 5; count++) yield* send(4)
    yield* send(1, { deadline: now + 30, parameters: { priority: 1n } })
    expect(statistics.queueRefusals.predicted).toBe(0)
    yield* send(1, { deadline: now + 30, parameters: { priority: 2n } })
    expect(statistics.queueRefusals.predicted).toBe(1)
  }),
)

const timed = (timeoutAction: "REJECT" | "DELAY") => ({
  queueing: {
    ...plainQueueing,
    defaultPolicy: { ...plainQueueing.defaultPolicy, timeoutAction, defaultTimeout: Duration.millis(15) },
  },
})

it.effect("a request waits for no longer than its queue timeout", () =>
  Effect.gen(function* () {
    const { send, settle, complete, statistics, now } = yield* taught(timed("REJECT"))
    yield* send(4)
    yield* settle
    const queued = []
    // At most 15 ms in the queue, and 10 of its own.
    for (let count = 0; count < 10; count++) queued.push(yield* send(4, { deadline: now + 30 }))
    expect(statistics.queueRefusals.predicted).toBe(0)
    expect(yield* Effect.flip(Fiber.join(yield* send(4, { deadline: now + 24 })))).toMatchObject({ _tag: "QueueFull" })
    yield* TestClock.adjust("15 millis")
    yield* complete(4)
    expect(statistics.queueRefusals).toMatchObject({ predicted: 1, timeout: 10 })
    for (const each of queued) expect(yield* Effect.flip(Fiber.join(each))).toMatchObject({ _tag: "QueueTimeout" })
  }),
)

it.effect("requests whose queue timeout has passed are not ahead of those of their level", () =>
  Effect.gen(function* () {
    const { send, settle, complete, sizes, statistics, now } = yield* taught(timed("DELAY"))
    yield* send(4)
    yield* settle
    for (let count = 0; count < 10; count++) yield* send(4)
    expect(yield* Effect.flip(Fiber.join(yield* send(3, { deadline: now + 60 })))).toMatchObject({ _tag: "QueueFull" })
    yield* TestClock.adjust("16 millis")
    const kept = yield* send(3, { deadline: now + 60 })
    expect(statistics.queueRefusals.predicted).toBe(1)
    yield* complete(4)
    expect(sizes().at(-1)).toBe("3")
    yield* complete(5)
    yield* Fiber.join(kept)
  }),
)

it.effect("requests that find a free instance are all executed, however little time is left", () =>
  Effect.gen(function* () {
    const { send, settle, sizes, statistics, now } = yield* taught()
    for (let count = 0; count < 4; count++) yield* send(1, { deadline: now + 5 })
    yield* settle
    expect(sizes().at(-1)).toBe("1+1+1+1")
    expect(statistics.queueRefusals.predicted).toBe(0)
  }),
)

it.effect("a batch on a replaced instance delays no request", () =>
  Effect.gen(function* () {
    const { send, settle, instances, scheduler, complete, statistics, now } = yield* taught({ instanceCount: 2 })
    const [first, second] = instances
    if (first === undefined || second === undefined) throw new Error("There are two instances.")
    yield* scheduler.replaceInstances([first])
    yield* send(4)
    yield* settle
    yield* Effect.forkChild(scheduler.replaceInstances([second]), { startImmediately: true })
    const kept = yield* send(4, { deadline: now + 10 })
    yield* settle
    yield* complete(5)
    yield* Fiber.join(kept)
    expect(statistics.queueRefusals.predicted).toBe(0)
  }),
)

it.effect("batches whose requests all fail do not make the model look faster", () =>
  Effect.gen(function* () {
    let fails = false
    const failed = Result.fail(new ExecutionFailed({ message: "" }))
    const { send, settle, now } = yield* taught({
      wrap: (execute) => (batch, settle) => {
        if (!fails) return execute(batch, settle)
        const outcomes = batch.requests.map(() => failed)
        settle(Exit.succeed({ outcomes, inputDuration: 0, outputDuration: 0 }))
        return () => {}
      },
    })
    fails = true
    for (let run = 0; run < 20; run++) {
      const fiber = yield* send(4)
      yield* settle
      yield* Effect.flip(Fiber.join(fiber))
    }
    fails = false
    yield* send(4)
    yield* settle
    expect(yield* Effect.flip(Fiber.join(yield* send(1, { deadline: now + 15 })))).toMatchObject({ _tag: "QueueFull" })
  }),
)
