/**
 * Lets a request go on after its batch: the instance is free for the next batch while the request still waits for its
 * reply.
 */
import { Result } from "effect"
import type { Release } from "../running/OpenRequests.ts"
import type { Stage } from "../scheduler/SubmitPipeline.ts"

/** `keep` keeps the model from being drained, until its result is called. */
export const make =
  (keep: () => Release): Stage =>
  (next) =>
  (request, reply, counts) => {
    let cancelRest: (() => void) | undefined
    const cancel = next(
      request,
      (outcome) => {
        const rest = Result.isSuccess(outcome) ? outcome.success.rest : undefined
        if (rest === undefined) return reply(outcome)
        const release = keep()
        const cancelled = rest((last) => {
          release()
          reply(last)
        })
        cancelRest = () => {
          cancelled()
          release()
        }
      },
      counts,
    )
    return () => (cancelRest ?? cancel)()
  }
