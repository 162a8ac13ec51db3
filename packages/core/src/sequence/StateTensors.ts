/** State tensors of a request: inputs from the request before it, and outputs for the next one. */
import type { StateTensor } from "../model/Sequencing.ts"
import * as DataType from "../tensor/DataType.ts"
import { elementCount, TypedTensor } from "../tensor/TypedTensor.ts"

/** The state of a new sequence. An extent that may vary is 1, and a BYTES element is empty. */
export const initial = ({ datatype, dims, initial }: StateTensor, batches: boolean): TypedTensor => {
  const own = dims.map((extent) => (extent < 0 ? 1 : extent))
  const shape = batches ? [1, ...own] : own
  // An element of BYTES is preceded by its length, 4 bytes.
  const bytes = initial?.bytes.slice() ?? new Uint8Array(elementCount(own) * (DataType.byteWidth(datatype) ?? 4))
  return new TypedTensor(datatype, shape, bytes)
}

/** Zeros in the shape of this tensor, for a row without a request. */
export const zerosLike = ({ datatype, shape }: TypedTensor): TypedTensor =>
  new TypedTensor(datatype, shape, new Uint8Array(elementCount(shape) * (DataType.byteWidth(datatype) ?? 4)))
