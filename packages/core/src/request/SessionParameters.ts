/** Parameters by which a session of a typed client marks its requests. sequence/CorrelationId.ts reads the others. */
import type { Parameters } from "./Request.ts"
import type { SequenceId } from "./SequencePosition.ts"

/** Ends a sequence without an execution. Triton refuses the request, which has no inputs, and has no other effect. */
const close = "sequence_close"

/** Whether the request only ends its sequence. */
export const isClose = (parameters: Parameters): boolean => parameters[close] === true

export const closing = (id: SequenceId): Parameters => ({ sequence_id: id, sequence_end: true, [close]: true })

/** The parameters of a request at this position. */
export const positioned = (
  parameters: Parameters,
  id: SequenceId,
  { isStart, isEnd }: { readonly isStart: boolean; readonly isEnd: boolean },
): Parameters => ({
  ...parameters,
  sequence_id: id,
  ...(isStart && { sequence_start: true }),
  ...(isEnd && { sequence_end: true }),
})
