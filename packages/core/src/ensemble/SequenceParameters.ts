/**
 * The parameters `sequence_id`, `sequence_start` and `sequence_end` of an ensemble. As in Triton, every response has
 * them: those of the request, or those that a step has set in its response. Pure.
 */
import { InvalidRequest } from "../error/InferenceError.ts"
import { noParameters, type Parameters } from "../request/Request.ts"

const defaults: Parameters = { sequence_id: 0n, sequence_start: false, sequence_end: false }

/** The parameters of a response. `steps`: the response parameters of the steps so far. */
export const ofResponse = (request: Parameters, steps: Parameters): Parameters => {
  const { sequence_id = 0n, sequence_start = false, sequence_end = false } = request
  return { sequence_id, sequence_start, sequence_end, ...steps }
}

/** The parameters of a step's request: those of the ensemble's, with the sequence that earlier steps have set. */
export const ofStep = (request: Parameters, steps: Parameters): Parameters => {
  if (steps === noParameters) return request
  const changed = Object.entries(defaults).flatMap(([name, unset]) => {
    const value = steps[name]
    return value === undefined || value === (request[name] ?? unset) ? [] : [[name, value] as const]
  })
  return changed.length === 0 ? request : { ...request, ...Object.fromEntries(changed) }
}

/** The parameters of a step's response. A response with one of the two flags clears the other. */
export const ofAnswer = (parameters: Parameters): Parameters => {
  const { sequence_start, sequence_end } = parameters
  if (sequence_start === undefined && sequence_end === undefined) return parameters
  return { ...parameters, sequence_start: sequence_start ?? false, sequence_end: sequence_end ?? false }
}

/** Checks the types of the parameters of a step's response, in Triton's words. */
export const problem = ({ sequence_id, sequence_start, sequence_end }: Parameters): InvalidRequest | undefined => {
  if (sequence_id !== undefined && typeof sequence_id !== "bigint" && typeof sequence_id !== "string") {
    const types = "TRITONSERVER_PARAMETER_INT or TRITONSERVER_PARAMETER_STRING"
    return new InvalidRequest({ message: `expected parameter 'sequence_id' to be ${types}` })
  }
  const flags = Object.entries({ sequence_start, sequence_end })
  const wrong = flags.find(([, value]) => value !== undefined && typeof value !== "boolean")
  if (wrong === undefined) return undefined
  return new InvalidRequest({ message: `expect parameter '${wrong[0]}' to be TRITONSERVER_PARAMETER_BOOL` })
}
