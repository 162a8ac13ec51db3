/** Converts batched tensors by name to the order of a signature and back, for `inferBatch` and batch handlers. */
import { Result } from "effect"
import * as SampleCodec from "./SampleCodec.ts"
import type { TensorSpec } from "../tensor/TensorSpec.ts"
import { plain, TextTensor } from "../tensor/TextTensor.ts"
import { reshape, TypedTensor } from "../tensor/TypedTensor.ts"

/**
 * Batched tensors by name into the order of the specs, all with the same number of rows: `expected` of them, if given.
 */
export const collect = (
  specs: ReadonlyArray<TensorSpec>,
  batch: unknown,
  expected?: number,
): Result.Result<
  { readonly tensors: ReadonlyArray<TypedTensor | undefined>; readonly rows: number },
  SampleCodec.SampleError
> => {
  const tensors: Array<TypedTensor | undefined> = []
  let rows = expected
  const strange = SampleCodec.namesProblem(specs, batch)
  if (strange !== undefined) return Result.fail(strange)
  for (const spec of specs) {
    const value = SampleCodec.valueOf(batch, spec.name)
    if (value === undefined) {
      tensors.push(undefined)
      continue
    }
    const wrong = SampleCodec.mismatch(spec, value, 1)
    if (!(value instanceof TypedTensor) || wrong !== undefined) {
      return Result.fail({ field: spec.name, message: wrong ?? "is not a tensor" })
    }
    const extent: number = value.shape[0] ?? 0
    rows ??= extent
    if (extent !== rows || extent < 1) {
      const message = `wrong length of the batch: expected ${Math.max(1, rows)} rows, got ${extent}`
      return Result.fail({ field: spec.name, message })
    }
    tensors.push(value)
  }
  return Result.succeed({ tensors, rows: rows ?? 1 })
}

/** Tensors in the order of the specs, by name, for code of users. */
export const named = (
  specs: ReadonlyArray<TensorSpec>,
  tensors: ReadonlyArray<TypedTensor | undefined>,
): Record<string, TypedTensor> => {
  const record: Record<string, TypedTensor> = {}
  for (const [index, spec] of specs.entries()) {
    const tensor = tensors[index]
    if (tensor !== undefined) record[spec.name] = plain(tensor)
  }
  return record
}

/** A batch of one: the tensor with a leading dimension of 1. */
export const withBatch = (tensor: TypedTensor): TypedTensor => reshape(tensor, [1, ...tensor.shape])

/** The problem of an output with this many rows, for a call with one sample. */
export const severalRows = (rows: number | undefined): string =>
  `a sample has 1 row, got ${rows}; streamBatch takes any number`

/** The only row of a batch of one. */
export const withoutBatch = (tensor: TypedTensor): TypedTensor => {
  const shape = tensor.shape.slice(1)
  return tensor instanceof TextTensor ? new TextTensor(shape, tensor.text) : reshape(tensor, shape)
}
