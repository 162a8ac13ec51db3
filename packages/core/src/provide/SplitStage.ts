/** Splits a request whose rows may not share a batch, and joins the responses (SplitRequest.ts). */
import * as Grouping from "../batch/Grouping.ts"
import type { ModelStatistics } from "../metrics/ModelStatistics.ts"
import type { Definition } from "../model/Definition.ts"
import type { Fields } from "../model/Field.ts"
import * as SplitRequest from "../scheduler/SplitRequest.ts"
import type { Stage } from "../scheduler/SubmitPipeline.ts"

/** Undefined for a model whose batches are not grouped by values of inputs. */
export const make = (
  { name, signature, batching }: Definition<Fields, Fields>,
  statistics: ModelStatistics,
): Stage | undefined => {
  const { groupBy } = batching
  if (groupBy.inputs.length === 0) return undefined
  return (submit) =>
    (request, reply, counts = statistics) => {
      const parts = Grouping.parts(groupBy, request)
      if (parts === undefined) return submit(request, reply, counts)
      const options = { model: name, outputs: signature.outputs, pad: groupBy.pad, statistics: counts, submit }
      return SplitRequest.submit(options, request, parts, reply)
    }
}
