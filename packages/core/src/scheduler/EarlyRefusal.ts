/**
 * Refusals of requests before they have arrived completely. An overloaded server refuses more requests than it answers,
 * so these errors are few and shared: a transport encodes each of them once.
 */
import { QueueFull } from "../error/InferenceError.ts"
import { sharedRefusal } from "../error/Refusal.ts"

const message = "The queue is too long to answer in time"

const refusal = (retryAfter: number) => sharedRefusal(() => new QueueFull({ message, retryAfter }))

/** By the time after which a retry makes sense, in milliseconds. */
const refusals = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000].map(refusal)

const longest = refusal(60_000)

/** The refusal of a request that would be so many milliseconds late. */
export const of = (lateness: number): QueueFull =>
  refusals.find(({ retryAfter = 0 }) => retryAfter >= lateness) ?? longest
