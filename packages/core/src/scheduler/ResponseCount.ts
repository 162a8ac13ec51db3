/** Counts the responses of a decoupled model until the end of their request. */
import { Effect } from "effect"
import type { QueuedRequest } from "./QueuedRequest.ts"
import type { Emit } from "../request/Request.ts"
import type { ModelStatistics } from "../metrics/ModelStatistics.ts"

/** The responses of a request so far. */
export type ResponseProgress = Pick<QueuedRequest, "done" | "queuedAt" | "responses" | "respondedAt"> &
  Partial<Pick<QueuedRequest, "continues">>

export const counted =
  (emit: Emit, queued: () => ResponseProgress, statistics: ModelStatistics, nanos: () => number): Emit =>
  (response, isLast) =>
    Effect.suspend(() => {
      const progress = queued()
      // The instance may not have noticed the end of the request yet.
      if (progress.done && progress.continues !== true) return Effect.void
      const now = nanos()
      const took = now - progress.respondedAt
      if (progress.responses === 0) statistics.firstResponse(now - progress.queuedAt)
      return Effect.map(emit(response, isLast), () => {
        if (progress.done && progress.continues !== true) return
        const counts = statistics.response(progress.responses)
        // Counted after `emit`: a response that could not be sent, or that its caller did not wait for, ended the
        // request.
        progress.responses += 1
        progress.respondedAt = nanos()
        counts?.computeInfer.add(took)
        counts?.computeOutput.add(0)
        counts?.success.add(took)
      })
    })
