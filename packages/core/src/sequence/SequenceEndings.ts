/** The ends of sequences for code that has its own memory of them, such as a table by their ids. */
import type { Request } from "../request/Request.ts"
import type { SequenceEnd, SequenceId } from "../request/SequencePosition.ts"

/** Why a sequence is over. All that such code remembers ends with its model, and cannot move. */
export type EndReason = Exclude<SequenceEnd, "stopped" | "moved">

/** Takes the end of a sequence. It must not throw. */
export type OnSequenceEnd = (id: SequenceId, reason: EndReason) => void

/** Calls `onEnd` at the end of each sequence of these requests. A later call for the same sequence replaces `onEnd`. */
export const watch = (requests: ReadonlyArray<Request>, onEnd: OnSequenceEnd): void => {
  for (const { sequence } of requests) {
    if (sequence === undefined || !sequence.isReady) continue
    const { id, state } = sequence
    state.onEnd = (reason) => {
      if (reason !== "stopped" && reason !== "moved") onEnd(id, reason)
    }
  }
}
