import { expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { ScriptProbe } from "./ScriptProbe.ts"

it.effect("an instance that does not answer within five seconds is not ready", () =>
  Effect.gen(function* () {
    const probe = new ScriptProbe()
    yield* probe.add("m_0_0", () => true)
    expect(yield* probe.probe).toBe(true)
    yield* probe.add("m_0_1", () => new Promise<boolean>(() => {}))
    const pending = yield* Effect.forkChild(probe.probe)
    yield* TestClock.adjust("4999 millis")
    expect(pending.pollUnsafe()).toBe(undefined)
    yield* TestClock.adjust("1 millis")
    expect(yield* Fiber.join(pending)).toBe(false)
  }),
)

it.effect("does not probe a removed instance", () =>
  Effect.gen(function* () {
    const probe = new ScriptProbe()
    yield* Effect.scoped(probe.add("m_0_0", () => false))
    expect(yield* probe.probe).toBe(true)
  }),
)
