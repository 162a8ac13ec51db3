import { expect, it } from "@effect/vitest"
import { Effect, Exit, Fiber } from "effect"
import { CallCredit } from "./CallCredit.ts"

it.live("a model waits once the code has as many unread responses, until it has read some", () =>
  Effect.gen(function* () {
    const credit = new CallCredit(3)
    expect([credit.take(), credit.take()]).toEqual([Exit.void, Exit.void])
    const waiting = [yield* Effect.forkChild(credit.take()), yield* Effect.forkChild(credit.take())]
    yield* Effect.yieldNow
    credit.give(1)
    yield* Effect.yieldNow
    expect(waiting.map((fiber) => fiber.pollUnsafe())).toEqual([undefined, undefined])
    credit.give(1)
    yield* Effect.forEach(waiting, Fiber.await)
    expect(credit.take()).not.toBe(Exit.void)
  }),
)

it.live("a call without a reader waits for none", () =>
  Effect.gen(function* () {
    const credit = new CallCredit(1)
    const waiting = yield* Effect.forkChild(credit.take())
    yield* Effect.yieldNow
    credit.give(Infinity)
    yield* Fiber.join(waiting)
    expect(credit.take()).toBe(Exit.void)
  }),
)
