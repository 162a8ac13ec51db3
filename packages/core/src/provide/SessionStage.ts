/** Answers the requests of callers that leave their session: their sequence ends, and nothing is executed. */
import { Result } from "effect"
import { constVoid } from "effect/Function"
import { noParameters } from "../request/Request.ts"
import * as SessionParameters from "../request/SessionParameters.ts"
import type { SequenceId } from "../request/SequencePosition.ts"
import type { Stage } from "../scheduler/SubmitPipeline.ts"
import * as CorrelationId from "../sequence/CorrelationId.ts"

/** `close` ends a sequence; `changed` is called after it. */
export const make =
  (close: (id: SequenceId) => void, changed: () => void): Stage =>
  (next) =>
  (request, reply, counts) => {
    if (!SessionParameters.isClose(request.parameters)) return next(request, reply, counts)
    const id = CorrelationId.idOf(request.parameters)
    if (id !== undefined) close(id)
    changed()
    reply(Result.succeed({ outputs: [], parameters: noParameters }))
    return constVoid
  }
