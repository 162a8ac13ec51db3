/**
 * The error of a session whose sequence is over. Servers say that a START is missing, which means nothing to the caller
 * of a session: the message here names the cause.
 */
import { type InferenceError, type SequenceLoss, SequenceNotFound } from "../error/InferenceError.ts"

/** In the text of each server. A server of Triton says nothing more. */
const startRule = "must specify the START flag on the first request of the sequence"

/** The error of a request whose session is over; undefined for any other error. */
export const of = (model: string, error: InferenceError, isStarted: boolean): SequenceNotFound | undefined => {
  const isMissing = error.message.includes(startRule)
  if (error._tag !== "SequenceNotFound") {
    return isStarted && isMissing && error._tag === "InvalidRequest" ? lost(model, error.message, {}) : undefined
  }
  // A server without memory of a sequence that it had started is not the same any more.
  const reason = isStarted && error.reason === "neverStarted" ? "restarted" : error.reason
  return lost(model, error.message, { reason, idleMillis: error.idleMillis })
}

/** The session itself has ended: nothing is sent. */
export const ended = (model: string): SequenceNotFound =>
  new SequenceNotFound({ message: `the session of model '${model}' has ended`, reason: "ended" })

type Loss = Pick<SequenceNotFound, "reason" | "idleMillis">

const lost = (model: string, message: string, loss: Loss): SequenceNotFound =>
  new SequenceNotFound({
    message: message.includes(startRule) ? `the session of model '${model}' is over: ${causeOf(loss)}` : message,
    ...loss,
  })

const causeOf = ({ reason, idleMillis }: Loss): string => {
  if (reason === "expired" && idleMillis !== undefined) return `it was idle for ${idleMillis} ms`
  return (reason && causes[reason]) ?? "the server does not know it"
}

const causes: { readonly [R in SequenceLoss]?: string } = {
  ended: "its sequence has ended",
  expired: "it was idle for too long",
  cancelled: "a request of it that waited was cancelled, or timed out",
  failed: "the instance that had it has stopped",
  tooLarge: "its state exceeded a limit",
  reloaded: "its model was loaded again",
  moved: "it has moved to another server",
}
