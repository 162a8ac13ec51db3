/** Counts the responses of a decoupled model until the end of their request. */
import { Effect, Exit } from "effect"
import type { QueuedRequest } from "./QueuedRequest.ts"
import type { Emit } from "../request/Request.ts"
import type { ModelStatistics } from "../metrics/ModelStatistics.ts"

/** The responses of a request so far. */
export type ResponseProgress = Pick<QueuedRequest, "done" | "queuedAt" | "responses" | "respondedAt"> &
  Partial<Pick<QueuedRequest, "continues">>

export const counted =
  (emit: Emit, queued: () => ResponseProgress, statistics: ModelStatistics, nanos: () => number): Emit =>
  (response, isLast) => {
    const progress = queued()
    // The instance may not have noticed the end of the request yet.
    if (hasEnded(progress)) return Exit.void
    const now = nanos()
    const took = now - progress.respondedAt
    if (progress.responses === 0) statistics.firstResponse(now - progress.queuedAt)
    // Counted after `emit`: a response that could not be sent, or that its caller did not wait for, ended the request.
    const emitted = emit(response, isLast)
    const isError = response.error !== undefined
    // `Exit.void` is the usual case, and comparing it is much faster than the general check.
    if (emitted === Exit.void) {
      count(progress, statistics, took, now, isError)
      return emitted
    }
    if (!Exit.isExit(emitted)) return Effect.map(emitted, () => count(progress, statistics, took, nanos(), isError))
    if (Exit.isSuccess(emitted)) count(progress, statistics, took, now, isError)
    return emitted
  }

const count = (
  progress: ResponseProgress,
  statistics: ModelStatistics,
  took: number,
  now: number,
  isError: boolean,
): void => {
  if (hasEnded(progress)) return
  const counts = statistics.response(progress.responses)
  progress.responses += 1
  progress.respondedAt = now
  if (isError) return counts?.failed(took)
  counts?.computeInfer.add(took)
  counts?.computeOutput.add(0)
  counts?.success.add(took)
}

/** Whether no further response may be sent. */
const hasEnded = ({ done, continues }: ResponseProgress): boolean => done && continues !== true
