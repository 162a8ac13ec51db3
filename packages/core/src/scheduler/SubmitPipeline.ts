/**
 * The path of an accepted request to the scheduler of its model, as a list of stages. A stage may change the request,
 * answer it, or submit it in parts. Stages that a model does not need are absent, at no cost. The pipeline of a family
 * ends at its variants, that of an ensemble at its steps.
 *
 *   submit ─► parameters ─► defaults ─► cache ─► split ─► scheduler
 *             declared      inputs      answers  rows     queue, batch, instance
 *             ones are      left out    known    that may
 *             decoded       are filled  ones     not share
 *                                                a batch
 */
import type { RequestStatistics } from "../metrics/ModelStatistics.ts"
import type { Cancel, Reply, Request } from "../request/Request.ts"

/** The request counts in the statistics of the model, or in `counts`. */
export type Submit = (request: Request, reply: Reply, counts?: RequestStatistics) => Cancel

/** Returns the stage in front of `next`. */
export type Stage = (next: Submit) => Submit

/** The stages in their order; undefined for a stage that the model does not need. */
export interface SubmitStages {
  /** Decodes the parameters that the model declares, and refuses those that do not fit. */
  readonly parameters: Stage | undefined
  /** Fills in the inputs that were left out and have a default. */
  readonly defaults: Stage | undefined
  /** Answers repeated requests. */
  readonly cache: Stage | undefined
  /** Submits rows that may not share a batch by themselves. */
  readonly split: Stage | undefined
}

/** The path through the stages to `end`. */
export const make = ({ parameters, defaults, cache, split }: Partial<SubmitStages>, end: Submit): Submit => {
  let submit = end
  for (const stage of [split, cache, defaults, parameters]) if (stage !== undefined) submit = stage(submit)
  return submit
}
