/** Decides whether a failed attempt may be followed by another one, and how the failure counts against its replica. */
import { type InferenceError, retryAfter } from "@nereid/core/internal/error/InferenceError"
import type { FailureCause } from "../channel/Channel.ts"

/**
 * `unsent`: no server has seen the request. `refused`: the server allows a retry, and says when. `uncertain`: the
 * server may have executed it. `final`: a retry is useless, or the server forbids it.
 */
export type FailureKind = "unsent" | "refused" | "uncertain" | "final"

/** Errors of servers that are full, starting or stopping. Another replica may succeed. */
const temporary: ReadonlySet<string> = new Set(["QueueFull", "QueueTimeout", "Unavailable", "ModelNotReady"])

export const kindOf = (error: InferenceError, cause: FailureCause | undefined): FailureKind => {
  if (cause === "unsent" || cause === "final") return cause
  if (cause === "lost") return "uncertain"
  if (!temporary.has(error._tag)) return "final"
  return retryAfter(error) === undefined ? "uncertain" : "refused"
}

/** Whether the request may be sent again. */
export const mayRetry = (kind: FailureKind, isIdempotent: boolean): boolean =>
  kind === "unsent" || kind === "refused" || (kind === "uncertain" && isIdempotent)

/** Whether the failure says that the replica is out of order, and not only full. */
export const isReplicaFailure = (error: InferenceError, kind: FailureKind): boolean =>
  kind === "unsent" || (kind !== "final" && (error._tag === "Unavailable" || error._tag === "ModelNotReady"))

/** Longest pause before a retry, in milliseconds, unless the server asks for more. */
const maxPause = 1_000

/**
 * Returns the pause before a retry in milliseconds: what the server asks for, or a random time that grows with the
 * attempts if no other replica is left.
 */
export const pause = (error: InferenceError, attempts: number, isElsewhere: boolean, random: () => number): number => {
  if (isElsewhere) return 0
  const backoff = random() * Math.min(maxPause, 50 * 2 ** attempts)
  return Math.max(retryAfter(error) ?? 0, backoff)
}
