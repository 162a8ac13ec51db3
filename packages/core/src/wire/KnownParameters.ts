/**
 * The request parameters that the protocol defines, and the values that they take. HTTP distinguishes values by their
 * JSON type, gRPC by the field of the oneof. Messages about wrong values are Triton's. All other parameters belong to
 * the model and reach it unchanged:
 * https://github.com/triton-inference-server/server/blob/main/docs/protocol/extension_parameters.md
 */
import type { InferParameter } from "@nereid/protocol/grpc_service"
import { InvalidRequest, type MalformedRequest } from "../error/InferenceError.ts"
import type { Parameter, Parameters } from "../request/Request.ts"

/** Names that no forwarded header may have, beside those that start with `triton_`. */
const names: ReadonlySet<string> = new Set([
  "sequence_id",
  "sequence_start",
  "sequence_end",
  "priority",
  "timeout",
  "headers",
  "binary_data_output",
])

const prefix = "triton_"

/** The value of a parameter of a gRPC message, by the field of its oneof. */
export type Choice = InferParameter["parameterChoice"]

/** Asks for a last, empty response on a stream; for gRPC only. */
export const emptyFinalResponse = "triton_enable_empty_final_response"

/** Of a response on a stream: whether its request has no further ones. */
export const finalResponse = "triton_final_response"

/** Bytes of a sequence id that is a text. */
const longestSequenceId = 128

export const isReserved = (name: string): boolean => names.has(name) || name.startsWith(prefix)

/** Without those that are for the transport alone. */
export const forModel = (parameters: Parameters): Parameters => {
  if (!Object.hasOwn(parameters, emptyFinalResponse)) return parameters
  const { [emptyFinalResponse]: _, ...others } = parameters
  return others
}

/** The problem with a parameter of a JSON document; undefined if it is valid. `wrongType` makes the decoder's error. */
export const jsonProblem = (
  name: string,
  value: Parameter,
  wrongType: (name: string, expected: string) => MalformedRequest,
): InvalidRequest | MalformedRequest | undefined => {
  if (name.startsWith(prefix)) {
    const rule = "are reserved for Triton usage and should not be specified."
    return new InvalidRequest({ message: `parameter keys starting with 'triton_' ${rule}` })
  }
  switch (name) {
    case "sequence_id":
      if (typeof value === "string") return sequenceIdProblem(value)
      return isUnsigned(value) ? undefined : wrongType(name, "string")
    case "sequence_start":
    case "sequence_end":
    case "binary_data_output":
      return typeof value === "boolean" ? undefined : wrongType(name, "boolean")
    case "priority":
    case "timeout":
      return isUnsigned(value) ? undefined : wrongType(name, "unsigned-integer")
    default:
      return undefined
  }
}

/** The problem with a parameter of a gRPC message; undefined if it is valid. */
export const messageProblem = (name: string, { case: type, value }: Choice): InvalidRequest | undefined => {
  if (name.startsWith(prefix) && name !== emptyFinalResponse) {
    const rule = `Only the following keys starting with 'triton_' are allowed: ${emptyFinalResponse}`
    return new InvalidRequest({
      message: `parameter keys starting with 'triton_' are reserved for Triton usage. ${rule}`,
    })
  }
  const expected = (types: string) =>
    new InvalidRequest({ message: `invalid value type for '${name}' parameter, expected ${types}.` })
  switch (name) {
    case "sequence_id":
      if (type === "stringParam") return sequenceIdProblem(value)
      return type === "int64Param" ? undefined : expected("int64_param or string_param")
    case "sequence_start":
    case "sequence_end":
    case emptyFinalResponse:
      return type === "boolParam" ? undefined : expected("bool_param")
    case "priority":
      if (type === "uint64Param") return undefined
      return type === "int64Param" ? negative(name, value) : expected("int64_param or uint64_param")
    case "timeout":
      return type === "int64Param" ? negative(name, value) : expected("int64_param")
    default:
      return type === undefined
        ? expected("bool_param, int64_param, uint64_param, double_param or string_param")
        : undefined
  }
}

const isUnsigned = (value: Parameter): boolean => typeof value === "bigint" && value >= 0n

const negative = (name: string, value: bigint): InvalidRequest | undefined =>
  value >= 0n
    ? undefined
    : new InvalidRequest({ message: `invalid value '${value}' for '${name}' parameter, expected value >= 0.` })

/** The problem with a sequence id that is a text; undefined if it is valid. */
export const sequenceIdProblem = (id: string): InvalidRequest | undefined => {
  const bytes = new TextEncoder().encode(id).length
  if (bytes <= longestSequenceId) return undefined
  const rule = `cannot be longer than ${longestSequenceId} bytes, got ${bytes}`
  return new InvalidRequest({ message: `the string of the 'sequence_id' parameter ${rule}` })
}
