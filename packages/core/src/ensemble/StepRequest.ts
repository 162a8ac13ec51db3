/**
 * Builds the request of a step from the tensors of the ensemble. The inputs are in the order of the step's model,
 * validated like those of a client, with or without a batch dimension. Pure.
 */
import { Result } from "effect"
import type { InvalidRequest } from "../error/InferenceError.ts"
import type { Request, Trace } from "../request/Request.ts"
import { validate } from "../wire/Validation.ts"
import type { WireTensor } from "../wire/WireRequest.ts"
import type { RunningModel } from "../running/RunningModel.ts"
import { matches, type TensorSpec } from "../tensor/TensorSpec.ts"
import { reshape, type TypedTensor } from "../tensor/TypedTensor.ts"

/** `inputs` by the positions of the model's signature; undefined for those that are left out. */
export const make = (
  model: RunningModel,
  inputs: ReadonlyArray<TypedTensor | undefined>,
  outer: Pick<Request, "id" | "parameters" | "deadline" | "connection">,
  requestedOutputs: ReadonlyArray<string>,
  trace: Trace,
): Result.Result<Request, InvalidRequest> => {
  const { id, parameters, deadline, connection } = outer
  const rows = fittingRows(model, inputs)
  if (rows !== undefined) {
    return Result.succeed({ id, inputs, rows, parameters, deadline, connection, requestedOutputs, trace })
  }
  const given: Array<WireTensor> = []
  for (const [index, tensor] of inputs.entries()) {
    const name = model.description.signature.inputs[index]?.name
    if (tensor === undefined || name === undefined) continue
    given.push({ name, datatype: tensor.datatype, shape: tensor.shape, bytes: tensor.bytes })
  }
  const wire = {
    modelName: model.description.name,
    modelVersion: model.description.version,
    id,
    parameters,
    inputs: given,
    outputs: [],
    trace,
  }
  return Result.map(validate(model.description, wire, deadline, connection), ({ request }) => ({
    ...request,
    requestedOutputs,
  }))
}

/**
 * The rows of a request whose tensors match the model, which is the common case; undefined if the request requires full
 * validation. Datatypes and byte lengths are already valid.
 */
const fittingRows = (
  { description: { signature, maxBatchSize } }: RunningModel,
  inputs: ReadonlyArray<TypedTensor | undefined>,
): number | undefined => {
  const leading = maxBatchSize > 0 ? 1 : 0
  let rows: number | undefined
  for (let index = 0; index < signature.inputs.length; index++) {
    const spec = signature.inputs[index]
    const tensor = inputs[index]
    if (tensor === undefined && spec?.optional === true) continue
    if (tensor === undefined || spec === undefined || tensor.datatype !== spec.datatype) return undefined
    if (!matches(spec.dims, tensor.shape, leading) || spec.dims.some(isSymbol)) return undefined
    if (leading === 0) continue
    rows ??= tensor.shape[0] ?? 0
    if (tensor.shape[0] !== rows || rows < 1 || rows > maxBatchSize) return undefined
  }
  return rows ?? 1
}

const isSymbol = (dim: number | string): boolean => typeof dim === "string"

/**
 * A tensor that one side has in batches and the other has not, as the other wants it: a row is put into a batch of one,
 * and the other way round. What fits the other as it is stays so, as does what cannot be helped.
 */
export const fitted = (
  tensor: TypedTensor,
  isBatched: boolean,
  { dims }: Pick<TensorSpec, "dims">,
  wantsBatch: boolean,
): TypedTensor => {
  if (isBatched === wantsBatch) return tensor
  const fits = matches(dims, tensor.shape)
  if (wantsBatch) return fits ? reshape(tensor, [1, ...tensor.shape]) : tensor
  return !fits && tensor.shape[0] === 1 ? reshape(tensor, tensor.shape.slice(1)) : tensor
}
