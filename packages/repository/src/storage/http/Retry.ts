/** Repeats requests that had no definite answer, after times that grow, with jitter so that replicas do not agree. */
import { Effect, Random, Result } from "effect"
import type { StoreProblem } from "./StoreProblem.ts"

/** Attempts of a request, without progress between them. */
export const maxAttempts = 5

/** Milliseconds before the second attempt; each further one waits twice as long. */
const firstDelay = 200
const maxDelay = 10_000

/** A store that wants a longer wait does not get it. */
const maxRetryAfter = 30_000

/** Waits before an attempt. `attempt`: the number of attempts that have failed, from 1. */
export const pause = (attempt: number, { retryAfter = 0 }: StoreProblem): Effect.Effect<void> =>
  Effect.flatMap(Random.next, (random) => {
    const delay = Math.min(maxDelay, firstDelay * 2 ** (attempt - 1)) * (0.5 + random / 2)
    return Effect.sleep(Math.max(delay, Math.min(retryAfter, maxRetryAfter)))
  })

export const retrying = Effect.fnUntraced(function* <A, R>(
  request: Effect.Effect<A, StoreProblem, R>,
): Effect.fn.Return<A, StoreProblem, R> {
  for (let attempt = 1; ; attempt++) {
    const result = yield* Effect.result(request)
    if (Result.isSuccess(result)) return result.success
    if (result.failure.kind !== "unreachable" || attempt === maxAttempts) return yield* result.failure
    yield* pause(attempt, result.failure)
  }
})
