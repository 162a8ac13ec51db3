/**
 * The edge for the parameters that a model declares: what passes has them decoded. Behind it is the queue, so that one request
 * whose parameters do not fit fails alone.
 */
import { Result } from "effect"
import type { Definition } from "../model/Definition.ts"
import { InvalidRequest } from "../Errors.ts"
import type { Fields } from "../model/Field.ts"
import { errorPrefix, type Request } from "./Inference.ts"
import * as ParameterFields from "../model/ParameterFields.ts"
import type { RunningModel } from "../running/RunningModel.ts"
import type { SampleError } from "../model/SampleCodec.ts"
import type { Statistics } from "../metrics/Statistics.ts"

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
    reply(Result.fail(wrongParameter(name, request, declared.failure)))
    return nothing
  }
}

export const wrongParameter = (model: string, request: Pick<Request, "id">, { field, message }: SampleError) =>
  new InvalidRequest({ message: `${errorPrefix(request)}parameter '${field}' of model '${model}': ${message}` })

const nothing = () => {}
