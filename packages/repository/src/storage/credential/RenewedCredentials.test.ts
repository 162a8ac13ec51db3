/** Credentials that are renewed before they expire, by the clock of a test. */
import { expect, it } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { TestClock } from "effect/testing"
import { StoreProblem } from "../http/StoreProblem.ts"
import { authorized } from "../store/ObjectStore.ts"
import { RenewedCredentials } from "./RenewedCredentials.ts"

const denied = new StoreProblem({ kind: "denied", code: "ExpiredToken", message: "it is so" })

/** Credentials that count how often they were issued, for so many minutes. */
const counting = (minutes: number | undefined) => {
  const state = { count: 0, isBroken: false }
  const issue = Effect.gen(function* () {
    if (state.isBroken) return yield* denied
    const now = yield* Clock.currentTimeMillis
    return { value: ++state.count, expiresAt: minutes === undefined ? undefined : now + minutes * 60_000 }
  })
  return { state, credentials: new RenewedCredentials(issue) }
}

it.effect("credentials of an hour are renewed five minutes before their end", () =>
  Effect.gen(function* () {
    const { credentials } = counting(60)
    expect(yield* credentials.current).toBe(1)
    yield* TestClock.adjust("54 minutes")
    expect(yield* credentials.current).toBe(1)
    yield* TestClock.adjust("1 minute")
    expect(yield* credentials.current).toBe(2)
  }),
)

it.effect("credentials of a minute are renewed after 48 seconds", () =>
  Effect.gen(function* () {
    const { credentials } = counting(1)
    expect(yield* credentials.current).toBe(1)
    yield* TestClock.adjust("47 seconds")
    expect(yield* credentials.current).toBe(1)
    yield* TestClock.adjust("1 second")
    expect(yield* credentials.current).toBe(2)
  }),
)

it.effect("a renewal that fails is a problem only after the end of the earlier credentials", () =>
  Effect.gen(function* () {
    const { state, credentials } = counting(60)
    yield* credentials.current
    state.isBroken = true
    yield* TestClock.adjust("59 minutes")
    expect(yield* credentials.current).toBe(1)
    yield* TestClock.adjust("1 minute")
    expect(yield* Effect.flip(credentials.current)).toBe(denied)
  }),
)

it.effect("requests at the same time share one renewal", () =>
  Effect.gen(function* () {
    const { credentials } = counting(undefined)
    const all = yield* Effect.all([credentials.current, credentials.current], { concurrency: "unbounded" })
    expect(all).toEqual([1, 1])
  }),
)

it.effect("credentials that a store refuses are read again, once", () =>
  Effect.gen(function* () {
    const { credentials } = counting(undefined)
    const sent: Array<number> = []
    const request = (accepted: number) => (value: number) => {
      sent.push(value)
      return value === accepted ? Effect.succeed(value) : Effect.fail(denied)
    }
    expect(yield* authorized(credentials, request(2))).toBe(2)
    expect(yield* Effect.flip(authorized(credentials, request(9)))).toBe(denied)
    expect(sent).toEqual([1, 2, 2, 3])
  }),
)
