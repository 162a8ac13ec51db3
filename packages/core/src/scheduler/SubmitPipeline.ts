/**
 * The path of an accepted request to the scheduler of its model, as a list of stages. A stage may change the request,
 * answer it, or submit it in parts. Stages that a model does not need are absent, at no cost. The pipeline of a family
 * ends at its variants, that of an ensemble at its steps. A model with sequences has SessionStage.ts in front, and one
 * that runs its requests step by step EmissionStage.ts. One whose requests may go on after their batch ends with
 * ContinuationStage.ts, between the numbers and the scheduler.
 *
 *   submit ─► sessions ─► emissions ─► parameters ─► defaults ─► cache ─► split ─► numbers ─► scheduler
 *             callers     responses    declared      inputs      answers  rows     numbered   queue, batch,
 *             that leave  wait for     ones are      left out    known    that may requests   instance
 *             end theirs  their reader decoded       are filled  ones     not      in order
 *                                                                         share
 */
import type { RequestStatistics } from "../metrics/ModelStatistics.ts"
import type { Cancel, Reply, Request } from "../request/Request.ts"

/** The request counts in the statistics of the model, or in `counts`. */
export type Submit = (request: Request, reply: Reply, counts?: RequestStatistics) => Cancel

/** Returns the stage in front of `next`. */
export type Stage = (next: Submit) => Submit

/** The stages in their order; undefined for a stage that the model does not need. */
export interface SubmitStages {
  /** Ends the sequences of callers that leave their session. */
  readonly sessions: Stage | undefined
  /** Lets responses wait for their reader outside of the batch. */
  readonly emissions: Stage | undefined
  /** Decodes the parameters that the model declares, and refuses those that do not fit. */
  readonly parameters: Stage | undefined
  /** Fills in the inputs that were left out and have a default. */
  readonly defaults: Stage | undefined
  /** Answers repeated requests. */
  readonly cache: Stage | undefined
  /** Submits rows that may not share a batch by themselves. */
  readonly split: Stage | undefined
  /** Orders the numbered requests of a sequence, and repeats their replies. */
  readonly numbers: Stage | undefined
  /** Lets requests go on after their batch. */
  readonly continuations: Stage | undefined
}

/** The path through the stages to `end`. */
export const make = (stages: Partial<SubmitStages>, end: Submit): Submit => {
  const { sessions, emissions, parameters, defaults, cache, split, numbers, continuations } = stages
  let submit = end
  for (const stage of [continuations, numbers, split, cache, defaults, parameters, emissions, sessions]) {
    if (stage !== undefined) submit = stage(submit)
  }
  return submit
}
