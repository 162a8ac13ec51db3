/** Fills in omitted inputs that have a default, so that no later stage sees a difference. */
import * as Defaults from "../model/Defaults.ts"
import type { Stage } from "../scheduler/SubmitPipeline.ts"
import type { ModelInterface } from "../wire/ModelInterface.ts"

/** Undefined for a model without defaults. */
export const make = ({
  signature,
  maxBatchSize,
}: Pick<ModelInterface, "signature" | "maxBatchSize">): Stage | undefined => {
  const fill = Defaults.filler(signature, maxBatchSize > 0)
  if (fill === undefined) return undefined
  return (next) => (request, reply, counts) => next(fill(request), reply, counts)
}
