/** Counts the responses of a decoupled model on their way to the caller, up to the end of their request. */
import { Effect } from "effect"
import type { QueuedRequest } from "./QueuedRequest.ts"
import type { Emit } from "../request/Request.ts"
import type { ModelStatistics } from "../metrics/ModelStatistics.ts"

/** Where it stands with the responses of a request. */
export type Responding = Pick<QueuedRequest, "done" | "queuedAt" | "responses" | "respondedAt">

export const counted =
  (emit: Emit, entry: () => Responding, statistics: ModelStatistics, nanos: () => number): Emit =>
  (response) =>
    Effect.suspend(() => {
      const responding = entry()
      // What runs may not have noticed yet.
      if (responding.done) return Effect.void
      const now = nanos()
      const took = now - responding.respondedAt
      if (responding.responses === 0) statistics.firstResponse(now - responding.queuedAt)
      return Effect.map(emit(response), () => {
        if (responding.done) return
        const counts = statistics.response(responding.responses)
        // Only now: a response that could not be sent, or that its caller did not wait for, is where the request ended.
        responding.responses += 1
        responding.respondedAt = nanos()
        counts?.computeInfer.add(took)
        counts?.computeOutput.add(0)
        counts?.success.add(took)
      })
    })
