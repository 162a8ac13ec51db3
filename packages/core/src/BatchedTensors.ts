/** Batched tensors by their names, in the order of a signature and back: what `inferBatch` and batch handlers take and give. */
import { Result } from "effect"
import * as SampleCodec from "./SampleCodec.ts"
import type { TensorSpec } from "./TensorSpec.ts"
import { reshape, type TypedTensor } from "./TypedTensor.ts"

/** Batched tensors by name into the order of the specs, all with the same number of rows. */
export const collect = (
  specs: ReadonlyArray<TensorSpec>,
  batch: object,
): Result.Result<
  { readonly tensors: ReadonlyArray<TypedTensor | undefined>; readonly rows: number },
  SampleCodec.SampleError
> => {
  const tensors: Array<TypedTensor | undefined> = []
  let rows: number | undefined
  for (const name of Object.keys(batch)) {
    if (!specs.some((spec) => spec.name === name)) return Result.fail({ field: name, message: "is not declared" })
  }
  for (const spec of specs) {
    const value: TypedTensor | undefined = Reflect.get(batch, spec.name)
    if (value === undefined) {
      if (!spec.optional) return Result.fail({ field: spec.name, message: "is missing" })
      tensors.push(undefined)
      continue
    }
    const wrong = SampleCodec.mismatch(spec, value, 1)
    if (wrong !== undefined) return Result.fail({ field: spec.name, message: `${wrong} after its batch dimension` })
    const [extent = 0] = value.shape
    rows ??= extent
    if (extent !== rows || extent < 1) {
      return Result.fail({ field: spec.name, message: `has ${extent} rows, expected ${Math.max(1, rows)}` })
    }
    tensors.push(value)
  }
  return Result.succeed({ tensors, rows: rows ?? 1 })
}

/** Tensors in the order of the specs, by name. */
export const named = (
  specs: ReadonlyArray<TensorSpec>,
  tensors: ReadonlyArray<TypedTensor | undefined>,
): Record<string, TypedTensor> => {
  const record: Record<string, TypedTensor> = {}
  for (const [index, spec] of specs.entries()) {
    const tensor = tensors[index]
    if (tensor !== undefined) record[spec.name] = tensor
  }
  return record
}

/** A batch of one: the tensor with a leading dimension of 1. */
export const withBatch = (tensor: TypedTensor): TypedTensor => reshape(tensor, [1, ...tensor.shape])

/** The only row of a batch of one. */
export const withoutBatch = (tensor: TypedTensor): TypedTensor => reshape(tensor, tensor.shape.slice(1))
