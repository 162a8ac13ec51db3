/**
 * The way of an accepted request to the scheduler of its model, as a list of stages. A stage may change the request, answer it,
 * or submit it in parts; a stage that a model does not need is absent and costs its requests nothing.
 *
 *   submit ─► parameters ─► defaults ─► cache ─► split ─► scheduler
 *             declared      inputs      answers  rows     queue, batch, instance
 *             ones are      left out    known    that may
 *             decoded       are filled  ones     not share
 *                                                a batch
 */
import type { RequestStatistics } from "../metrics/ModelStatistics.ts"
import type { Cancel, Reply, Request } from "../request/Request.ts"

/** Counted in the model's statistics, or in `counts`. */
export type Submit = (request: Request, reply: Reply, counts?: RequestStatistics) => Cancel

/** What one stage makes of the way behind it. */
export type Stage = (next: Submit) => Submit

/** The stages in their order; undefined for one that the model does not need. */
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

/** The way through all stages to the scheduler. */
export const make = ({ parameters, defaults, cache, split }: SubmitStages, scheduler: Submit): Submit => {
  let submit = scheduler
  for (const stage of [split, cache, defaults, parameters]) if (stage !== undefined) submit = stage(submit)
  return submit
}
