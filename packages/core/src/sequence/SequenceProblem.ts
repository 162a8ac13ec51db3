/** Why a request cannot belong to a sequence, in Triton's words and order. */
import { type InferenceError, InvalidRequest, SequenceNotFound } from "../error/InferenceError.ts"
import { stopping } from "../error/Refusal.ts"
import type { Sequencing } from "../model/Sequencing.ts"
import * as IdleLimit from "../request/IdleLimit.ts"
import { errorPrefix, type Parameters, type Request } from "../request/Request.ts"
import type { SequenceId } from "../request/SequencePosition.ts"
import * as CorrelationId from "./CorrelationId.ts"
import type { EndedSequence, EndedSequences } from "./EndedSequences.ts"

export interface RequestCheck {
  readonly model: string
  readonly sequencing: Sequencing
  readonly isLive: (id: SequenceId) => boolean
  readonly ended: EndedSequences
  /** Whether no further sequence is taken. */
  readonly isStopping: () => boolean
}

export const requestProblem = (
  { model, sequencing, isLive, ended, isStopping }: RequestCheck,
  request: Request,
): InferenceError | undefined => {
  const { parameters, rows } = request
  const { isIterative } = sequencing
  const id = CorrelationId.idOf(parameters)
  const problem = idProblem(model, sequencing, id)
  if (problem !== undefined) return new InvalidRequest({ message: `${errorPrefix(request)}${problem}` })
  if (rows > 1) {
    const rule = "must specify batch-size 1 due to requirements of sequence batcher"
    return new InvalidRequest({ message: `inference request to model '${model}' ${rule}` })
  }
  if (id === undefined) {
    if (isIterative) return isStopping() ? stopping() : undefined
    const rule = "must specify a non-zero or non-empty correlation ID"
    return new InvalidRequest({ message: `inference request to model '${model}' ${rule}` })
  }
  const idle = idleProblem(model, sequencing, parameters)
  if (idle !== undefined) return new InvalidRequest({ message: `${errorPrefix(request)}${idle}` })
  if (CorrelationId.isStart(parameters)) return isStopping() ? stopping() : undefined
  if (isLive(id)) return undefined
  return sequenceNotFound(model, id, ended.get(id))
}

/** The problem of the idle limit that a request gives its sequence; undefined if it gives none, or may give it. */
const idleProblem = (model: string, { maxIdleLimit }: Sequencing, parameters: Parameters): string | undefined => {
  const { [IdleLimit.name]: given } = parameters
  if (given === undefined) return undefined
  if (!IdleLimit.isValid(given)) {
    return `parameter '${IdleLimit.name}' must be an integer of at least 1, in microseconds, but ${String(given)} was given`
  }
  if ((IdleLimit.read(parameters) ?? 0) <= maxIdleLimit) return undefined
  const limit = `at most ${IdleLimit.microsOf(maxIdleLimit)} microseconds for model '${model}'`
  const option = "'max_sequence_idle_limit_microseconds' (in code 'maxIdleLimit')"
  return `parameter '${IdleLimit.name}' must be ${limit}, but ${String(given)} was given. Give less, or raise ${option}`
}

/** Why no further sequence begins while no slot is free. */
export const backlogProblem = (model: string, { maxBacklog, isIterative }: Sequencing): string => {
  // Each request of an iterative model is a sequence.
  const noun = isIterative ? "request" : "sequence"
  const problem = `the backlog of ${noun}s of model '${model}' has reached its limit of ${maxBacklog}`
  return `${problem}. Retry once a ${noun} has ended, or raise 'max_sequence_backlog' (in code 'maxBacklog')`
}

/** The error of a request that continues no live sequence; `ended` if the end of the sequence is remembered. */
export const sequenceNotFound = (model: string, id: SequenceId, ended: EndedSequence | undefined): SequenceNotFound => {
  const rule = "must specify the START flag on the first request of the sequence"
  const { reason, idleMillis } = ended ?? { reason: "neverStarted" as const, idleMillis: undefined }
  return new SequenceNotFound({
    message: `inference request for sequence ${id} to model '${model}' ${rule}`,
    // The model itself has not stopped, so it was loaded again.
    reason: reason === "stopped" ? "reloaded" : reason,
    idleMillis,
  })
}

/** Why the model cannot have this kind of id; undefined if it can. */
export const idProblem = (model: string, { controls }: Sequencing, id: SequenceId | undefined): string | undefined => {
  const control = controls.find(({ kind }) => kind === "CORRID")
  if (control === undefined) return undefined
  const given = typeof id === "string" ? "BYTES" : "UINT64"
  if ((given === "BYTES") === (control.datatype === "BYTES")) return undefined
  const expected = `but model '${model}' expects '${control.datatype}'`
  return `sequence batching control '${control.name}' data-type is '${given}', ${expected}`
}
