/**
 * The edge for the parameters that a model declares: what passes has them decoded. Behind it is the queue, so that one request
 * whose parameters do not fit fails alone.
 */
import { constVoid } from "effect/Function"
import { Result } from "effect"
import type { Definition } from "../model/Definition.ts"
import type { Fields } from "../model/Field.ts"
import * as ParameterFields from "../model/ParameterFields.ts"
import type { RunningModel } from "../running/RunningModel.ts"
import type { Statistics } from "../metrics/ModelStatistics.ts"

/** As it is where the model declares none. */
export const checked = (
  { name, parameters }: Definition<Fields, Fields>,
  statistics: Statistics,
  submit: RunningModel["submit"],
): RunningModel["submit"] => {
  if (parameters === undefined) return submit
  const { decode } = ParameterFields.make(parameters)
  return (request, reply) => {
    const declared = decode(request.parameters)
    if (Result.isSuccess(declared)) return submit({ ...request, declared: declared.success }, reply)
    statistics.failed("REJECTED", 0)
    reply(Result.fail(ParameterFields.wrongParameter(name, request, declared.failure)))
    return constVoid
  }
}
