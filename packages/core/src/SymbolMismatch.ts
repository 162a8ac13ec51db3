/** The rule of symbolic dims: a name stands for one extent in all inputs of one request. */
import type { TensorSpec } from "./TensorSpec.ts"
import type { TypedTensor } from "./TypedTensor.ts"

/** What breaks the rule, or undefined. Ranks must have been checked; a batch dimension in front does not matter. */
export const symbolMismatch = (
  model: string,
  specs: ReadonlyArray<TensorSpec>,
  tensors: ReadonlyArray<TypedTensor | undefined>,
): string | undefined => {
  let seen: Map<string, { readonly input: string; readonly extent: number | undefined }> | undefined
  for (const [index, { name, dims }] of specs.entries()) {
    const shape = tensors[index]?.shape
    if (shape === undefined) continue
    for (const [axis, dim] of dims.entries()) {
      if (typeof dim !== "string") continue
      const extent = shape[shape.length - dims.length + axis]
      seen ??= new Map()
      const first = seen.get(dim)
      if (first === undefined) seen.set(dim, { input: name, extent })
      else if (first.extent !== extent) {
        const one = `dimension '${dim}' is ${first.extent} in input '${first.input}'`
        return `${one} but ${extent} in input '${name}' for model '${model}'`
      }
    }
  }
  return undefined
}
