/**
 * Refusals of requests before they have arrived completely. An overloaded server refuses more requests than it answers,
 * so these errors are few and shared: a transport encodes each of them once.
 */
import { QueueFull } from "../error/InferenceError.ts"
import { sharedRefusal } from "../error/Refusal.ts"
import { errorPrefix } from "../request/Request.ts"

export const fullMessage = "Exceeds maximum queue size"

/** Times after which a retry makes sense, in milliseconds. */
const retryDelays = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000] as const

/** Refusals by the time after which a retry makes sense, rounded up. */
const refusals = (message: string): ((milliseconds: number) => QueueFull) => {
  const refusal = (retryAfter: number) => sharedRefusal(() => new QueueFull({ message, retryAfter }))
  const all = retryDelays.map(refusal)
  const longest = refusal(Math.max(...retryDelays))
  return (milliseconds) => all.find(({ retryAfter = 0 }) => retryAfter >= milliseconds) ?? longest
}

/** The refusal of a request that would be so many milliseconds late. */
export const late = refusals("The queue is too long to answer in time")

/** The refusal of a request without an id for a full queue, which drains in so many milliseconds. */
export const full = refusals(`${errorPrefix({ id: "" })}${fullMessage}`)
