/** Parameters by which a session of a typed client marks its requests. sequence/CorrelationId.ts reads the others. */
import * as IdleLimit from "./IdleLimit.ts"
import type { Parameters } from "./Request.ts"
import type { SequenceId } from "./SequencePosition.ts"

/** Ends a sequence without an execution. Triton refuses the request, which has no inputs, and has no other effect. */
const close = "sequence_close"

/** Whether numbers of requests may be left out, because a request follows the reply to the one before it. */
export const gaps = "sequence_gaps"

/** Whether the server executes the request once, also if it is sent again. */
export const isRepeatable = (parameters: Parameters): boolean => parameters[gaps] === true

/** Whether the request only ends its sequence. */
export const isClose = (parameters: Parameters): boolean => parameters[close] === true

export const closing = (id: SequenceId): Parameters => ({ sequence_id: id, sequence_end: true, [close]: true })

/** The place of a request in its session. */
export interface Position {
  readonly isStart: boolean
  readonly isEnd: boolean
  /** Limit of idle time of the session, as the value of its parameter. */
  readonly maxIdle: bigint | undefined
  /** Number of the request in its session; undefined for a session without retries. */
  readonly number?: bigint | undefined
}

/** The parameters of a request at this position. */
export const positioned = (
  parameters: Parameters,
  id: SequenceId,
  { isStart, isEnd, maxIdle, number }: Position,
): Parameters => ({
  ...parameters,
  sequence_id: id,
  ...(isStart && { sequence_start: true, ...(maxIdle !== undefined && { [IdleLimit.name]: maxIdle }) }),
  ...(isEnd && { sequence_end: true }),
  ...(number !== undefined && { sequence_number: number, [gaps]: true }),
})
