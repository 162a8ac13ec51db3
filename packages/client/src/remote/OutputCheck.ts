/**
 * Checks the outputs of a reply against the signature. A valid reply has every declared output, by position, with the
 * right datatype, shape and byte length. Any other reply fails with an ExecutionFailed that names the output and the
 * reason.
 *
 * Outputs that are not declared are left out, so that a server may have more of them than its older clients know.
 */
import { Result } from "effect"
import { ExecutionFailed } from "@nereid/core/Errors"
import type { Response } from "@nereid/core/internal/request/Request"
import { matches, print, type Signature, type TensorSpec } from "@nereid/core/internal/tensor/TensorSpec"
import { sizeProblem, TypedTensor } from "@nereid/core/internal/tensor/TypedTensor"
import type { WireResponse, WireTensor } from "@nereid/core/internal/wire/WireRequest"

export interface ExpectedOutputs {
  readonly name: string
  readonly signature: Signature
  /** The extent of every output's batch dimension, -1 for any; undefined for a model without one. */
  readonly rows: number | undefined
}

export const check = (expected: ExpectedOutputs, wire: WireResponse): Result.Result<Response, ExecutionFailed> => {
  const outputs: Array<TypedTensor> = []
  for (const spec of expected.signature.outputs) {
    const tensor = wire.outputs.find(({ name }) => name === spec.name)
    const problem = tensor === undefined ? missing(wire) : mismatch(spec, tensor, expected.rows)
    if (problem !== undefined || tensor === undefined) {
      const message = `output '${spec.name}' of model '${expected.name}' in the server's response: ${problem}`
      return Result.fail(new ExecutionFailed({ message }))
    }
    outputs.push(new TypedTensor(spec.datatype, tensor.shape, tensor.bytes))
  }
  return Result.succeed({ outputs, parameters: wire.parameters })
}

const missing = ({ outputs }: WireResponse) =>
  `is missing; the response has ${outputs.length === 0 ? "no outputs" : outputs.map(({ name }) => `'${name}'`).join(", ")}`

const mismatch = (spec: TensorSpec, tensor: WireTensor, rows: number | undefined): string | undefined => {
  const { datatype, shape, bytes } = tensor
  const batching = rows !== undefined
  const fits =
    datatype === spec.datatype &&
    matches(spec.dims, shape, batching ? 1 : 0) &&
    (!batching || rows === -1 || shape[0] === rows) &&
    shape.every((extent) => Number.isSafeInteger(extent) && extent >= 0)
  if (!fits) {
    return `expected ${print(spec.datatype, batching ? [rows, ...spec.dims] : spec.dims)}, got ${print(datatype, shape)}`
  }
  return sizeProblem(new TypedTensor(spec.datatype, shape, bytes))
}
