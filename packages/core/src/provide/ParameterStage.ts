/**
 * Decodes the declared parameters of a request before it is queued, so that invalid parameters fail only that request.
 */
import { Result } from "effect"
import { constVoid } from "effect/Function"
import type { ModelStatistics } from "../metrics/ModelStatistics.ts"
import type { Definition } from "../model/Definition.ts"
import type { Fields } from "../model/Field.ts"
import * as ParameterFields from "../model/ParameterFields.ts"
import type { Stage } from "../scheduler/SubmitPipeline.ts"

/** Undefined for a model that declares none. */
export const make = (
  { name, parameters }: Pick<Definition<Fields, Fields>, "name" | "parameters">,
  statistics: ModelStatistics,
): Stage | undefined => {
  if (parameters === undefined) return undefined
  const { decode } = ParameterFields.make(parameters)
  return (next) => (request, reply, counts) => {
    const declared = decode(request.parameters)
    if (Result.isSuccess(declared)) return next({ ...request, declared: declared.success }, reply, counts)
    statistics.failed("REJECTED", 0)
    reply(Result.fail(ParameterFields.wrongParameter(name, request, declared.failure)))
    return constVoid
  }
}
