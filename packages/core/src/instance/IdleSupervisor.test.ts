/** Instances whose workers end while they are idle. */
import { expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Scope } from "effect"
import { TestClock } from "effect/testing"
import * as Batch from "../batch/Batch.ts"
import { noParameters } from "../request/Request.ts"
import { TypedTensor } from "../tensor/TypedTensor.ts"
import type { Instance, Settle } from "./Instance.ts"
import * as Supervisor from "./Supervisor.ts"

const batch = Batch.make([])
const result = Exit.succeed({ outcomes: [], inputDuration: 0, outputDuration: 0 })

const executing = (instance: Instance, of: Batch.Batch) =>
  Effect.callback<void, unknown>((resume) => {
    instance.execute(of, (exit) => resume(Exit.asVoid(exit)))
  })

/** Workers that settle their batches at once, or when `settleAll` is called. */
const harness = (idleTimeout: string | undefined) =>
  Effect.gen(function* () {
    const log: Array<string> = []
    const held: Array<Settle> = []
    const state = { fails: false, isSlow: false }
    let gate: Deferred.Deferred<void> | undefined
    const start = Effect.gen(function* () {
      if (gate !== undefined) yield* Deferred.await(gate)
      if (state.fails) return yield* Effect.fail({ message: "no memory" })
      log.push("start")
      let isAlive = true
      const exited = Deferred.makeUnsafe<string>()
      const worker: Supervisor.Supervised = {
        get isAlive() {
          return isAlive
        },
        exited,
        execute: ({ requests }, settle) => {
          log.push(...requests.map(({ inputs }) => `runs ${inputs[0]?.bytes}`))
          if (state.isSlow) held.push(settle)
          else settle(result)
          return () => log.push("interrupt")
        },
        stop: Effect.suspend(() => {
          if (isAlive) log.push("stop")
          isAlive = false
          return Effect.asVoid(Deferred.succeed(exited, "stopped"))
        }),
      }
      return worker
    })
    const instance = yield* Supervisor.make({
      name: "m_0_0",
      concurrency: () => 2,
      start,
      restart: { times: 1, delay: "1 second" },
      ...(idleTimeout === undefined ? {} : { idleTimeout: "1 minute" }),
    })
    const statuses: Array<string> = []
    instance.onStatusChange = () => statuses.push(instance.status())
    return {
      instance,
      log,
      statuses,
      state,
      execute: executing(instance, batch),
      settleAll: () => held.splice(0).forEach((settle) => settle(result)),
      /** Starts wait for the returned gate from now on. */
      hold: Effect.sync(() => (gate = Deferred.makeUnsafe())),
    }
  })

it.effect("a worker ends after the timeout without batches, and the next batch starts one", () =>
  Effect.gen(function* () {
    const { instance, log, statuses, execute } = yield* harness("1 minute")
    yield* TestClock.adjust("50 seconds")
    yield* execute
    yield* TestClock.adjust("60 seconds")
    expect(log).toEqual(["start"])
    yield* TestClock.adjust("60 seconds")
    expect(log).toEqual(["start", "stop"])
    expect(instance.status()).toBe("available")
    yield* execute
    yield* execute
    expect(log).toEqual(["start", "stop", "start"])
    yield* TestClock.adjust("2 minutes")
    expect(log).toEqual(["start", "stop", "start", "stop"])
    expect(statuses).toEqual([])
  }),
)

it.effect("a worker that executes a batch for longer than the timeout stays", () =>
  Effect.gen(function* () {
    const { log, state, execute, settleAll } = yield* harness("1 minute")
    state.isSlow = true
    const running = yield* Effect.forkChild(execute, { startImmediately: true })
    yield* TestClock.adjust("10 minutes")
    expect(log).toEqual(["start"])
    settleAll()
    yield* Fiber.join(running)
    yield* TestClock.adjust("2 minutes")
    expect(log).toEqual(["start", "stop"])
  }),
)

it.effect("without a timeout, a worker stays", () =>
  Effect.gen(function* () {
    const { log } = yield* harness(undefined)
    yield* TestClock.adjust("1 day")
    expect(log).toEqual(["start"])
  }),
)

it.effect("batches wait for the worker, and one that was interrupted meanwhile is interrupted as it runs", () =>
  Effect.gen(function* () {
    const { instance, log, hold, state } = yield* harness("1 minute")
    yield* TestClock.adjust("2 minutes")
    const gate = yield* hold
    state.isSlow = true
    const interrupt = instance.execute(batch, () => {})
    instance.execute(batch, () => {})
    interrupt()
    expect(log).toEqual(["start", "stop"])
    yield* Deferred.succeed(gate, undefined)
    yield* Effect.yieldNow
    expect(log).toEqual(["start", "stop", "start", "interrupt"])
  }),
)

it.effect("a batch that waits for the worker has its own inputs, which may be in memory that is only lent", () =>
  Effect.gen(function* () {
    const { instance, log } = yield* harness("1 minute")
    yield* TestClock.adjust("2 minutes")
    const lent = Uint8Array.of(1, 2)
    const inputs = [new TypedTensor("UINT8", [1, 2], lent)]
    const request = { id: "", inputs, rows: 1, parameters: noParameters, deadline: undefined }
    const running = yield* Effect.forkChild(executing(instance, Batch.make([request])), { startImmediately: true })
    lent.fill(9)
    yield* Fiber.join(running)
    expect(log).toEqual(["start", "stop", "start", "runs 1,2"])
  }),
)

it.effect("batches fail if no worker starts, which then is tried as often as after a death", () =>
  Effect.gen(function* () {
    const { instance, log, statuses, state, execute } = yield* harness("1 minute")
    yield* TestClock.adjust("2 minutes")
    state.fails = true
    expect(yield* Effect.flip(execute)).toMatchObject({
      _tag: "Unavailable",
      message: "instance m_0_0 failed to start: no memory",
    })
    expect(instance.status()).toBe("restarting")
    state.fails = false
    yield* TestClock.adjust("1 second")
    expect(instance.status()).toBe("available")
    yield* execute
    expect(log).toEqual(["start", "stop", "start"])
    expect(statuses).toEqual(["restarting", "available"])
  }),
)

it.effect("batches that wait fail where the model ends", () =>
  Effect.gen(function* () {
    const scope = yield* Scope.make()
    const { hold, execute } = yield* Scope.provide(harness("1 minute"), scope)
    yield* TestClock.adjust("2 minutes")
    const gate = yield* hold
    const waiting = yield* Effect.forkChild(Effect.flip(execute), { startImmediately: true })
    const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void), { startImmediately: true })
    yield* Deferred.succeed(gate, undefined)
    yield* Fiber.join(closing)
    expect(yield* Fiber.join(waiting)).toMatchObject({ message: "instance m_0_0 is stopping" })
  }),
)

it.each([0, -1, "-1 seconds", Infinity] as const)("refuses the timeout %s", (timeout) => {
  expect(Supervisor.wrongIdleTimeout(timeout)).toBe(
    `idleTimeout must be a finite time above 0, but ${timeout} was given`,
  )
})
