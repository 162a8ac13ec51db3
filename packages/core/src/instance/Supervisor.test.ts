/** Restarts of instances: which deaths count as in a row. */
import { expect, it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { TestClock } from "effect/testing"
import * as Supervisor from "./Supervisor.ts"

/** An instance whose executors die when told to, and never execute a batch. */
const harness = Effect.gen(function* () {
  const state = { starts: 0, die: () => {} }
  const instance = yield* Supervisor.make({
    name: "m_0_0",
    concurrency: () => 1,
    start: Effect.sync((): Supervisor.Supervised => {
      state.starts += 1
      const exited = Deferred.makeUnsafe<string>()
      let isAlive = true
      state.die = () => {
        isAlive = false
        Deferred.doneUnsafe(exited, Effect.succeed("signal SIGKILL"))
      }
      return {
        get isAlive() {
          return isAlive
        },
        exited,
        execute: () => () => {},
        stop: Effect.void,
      }
    }),
    restart: { times: 2, delay: "1 second" },
  })
  const dieAfter = Effect.fnUntraced(function* (life: "9 minutes" | "10 minutes") {
    yield* TestClock.adjust(life)
    state.die()
    // Longer than any delay of two restarts.
    yield* TestClock.adjust("5 seconds")
  })
  return { instance, state, dieAfter }
})

it.effect("an idle executor that dies once in ten minutes is restarted each time", () =>
  Effect.gen(function* () {
    const { instance, state, dieAfter } = yield* harness
    for (let death = 0; death < 10; death++) yield* dieAfter("10 minutes")
    expect([instance.status(), state.starts]).toEqual(["available", 11])
  }),
)

it.effect("executors that live for less than ten minutes die in a row, until the instance has failed", () =>
  Effect.gen(function* () {
    const { instance, state, dieAfter } = yield* harness
    for (let death = 0; death < 3; death++) yield* dieAfter("9 minutes")
    expect([instance.status(), state.starts]).toEqual(["failed", 3])
  }),
)

it.effect("a long life forgives the deaths before it, and none after it", () =>
  Effect.gen(function* () {
    const { instance, state, dieAfter } = yield* harness
    for (const life of ["9 minutes", "9 minutes", "10 minutes", "9 minutes"] as const) yield* dieAfter(life)
    expect([instance.status(), state.starts]).toEqual(["available", 5])
    yield* dieAfter("9 minutes")
    expect([instance.status(), state.starts]).toEqual(["failed", 5])
  }),
)
