/** Checks symbolic dims: a name represents the same extent in all inputs of one request. */
import type { TensorSpec } from "./TensorSpec.ts"
import type { TypedTensor } from "./TypedTensor.ts"

/** The first violation, or undefined. Ranks must have been checked; a leading batch dimension is allowed. */
export const symbolMismatch = (
  model: string,
  specs: ReadonlyArray<TensorSpec>,
  tensors: ReadonlyArray<TypedTensor | undefined>,
): string | undefined => {
  // Without a table of names, which every request would pay for: there are few.
  for (let index = 0; index < specs.length; index++) {
    const spec = specs[index]
    if (spec === undefined || tensors[index] === undefined) continue
    for (let axis = 0; axis < spec.dims.length; axis++) {
      const dim = spec.dims[axis]
      if (typeof dim !== "string") continue
      const first = firstWith(dim, specs, tensors)
      const expected = extentOf(dim, specs[first], tensors[first])
      const extent = extentAt(axis, spec, tensors[index])
      if (extent === expected) continue
      const one = `dimension '${dim}' is ${expected} in input '${specs[first]?.name}'`
      return `${one} but ${extent} in input '${spec.name}' for model '${model}'`
    }
  }
  return undefined
}

/** The first input that is there and has the name in its dims. */
const firstWith = (
  dim: string,
  specs: ReadonlyArray<TensorSpec>,
  tensors: ReadonlyArray<TypedTensor | undefined>,
): number => {
  let index = 0
  while (tensors[index] === undefined || specs[index]?.dims.includes(dim) !== true) index += 1
  return index
}

const extentOf = (dim: string, spec: TensorSpec | undefined, tensor: TypedTensor | undefined): number | undefined =>
  spec && extentAt(spec.dims.indexOf(dim), spec, tensor)

const extentAt = (axis: number, { dims }: TensorSpec, tensor: TypedTensor | undefined): number | undefined =>
  tensor?.shape[tensor.shape.length - dims.length + axis]
