/** Code that answers a request, run so that a defect in it ends that request alone. */
import { Effect } from "effect"
import type { IncomingRequest, OutgoingResponse } from "./HttpExchange.ts"
import { sendText } from "./HttpReply.ts"

/** Runs code of a request, also from a later event: an exception becomes a response and a line of the log. */
export type DefectGuard = (run: () => void) => void

/** Answers a request, over HTTP/1.1 or HTTP/2. */
export type GuardedHandler = (request: IncomingRequest, response: OutgoingResponse, guard: DefectGuard) => void

/** `frontEnd` names it in the log; `cutOff` ends the connection or stream of a response that has begun. */
export const make =
  (
    frontEnd: string,
    runFork: (effect: Effect.Effect<void>) => unknown,
    request: IncomingRequest,
    response: OutgoingResponse,
    cutOff: () => void,
  ): DefectGuard =>
  (run) => {
    try {
      run()
    } catch (defect) {
      runFork(Effect.logError(`The ${frontEnd} front end failed on ${request.method} ${request.url}`, defect))
      if (response.headersSent) cutOff()
      else sendText(response, 500, "internal error")
    }
  }
