/** Checks that the model of a module matches its declaration: a thread has a separate copy of the declaration. */
import type { Definition } from "@nereid/core/internal/model/Definition"
import type { Fields } from "@nereid/core/internal/model/Field"
import { print } from "@nereid/core/internal/tensor/TensorSpec"
import type { FromThread, SpecMessage } from "./ThreadProtocol.ts"

type Ready = Extract<FromThread, { _tag: "Ready" }>

/** Returns the first difference between the declaration and the module's model, or undefined. */
export const difference = (
  { maxBatchSize, signature }: Pick<Definition<Fields, Fields>, "maxBatchSize" | "signature">,
  ready: Ready,
): string | undefined => {
  for (const side of ["inputs", "outputs"] as const) {
    const [declared, found] = [signature[side], ready[side]].map((specs) => specs.map(printed).join(", "))
    if (declared !== found) return `its ${side} differ from the declaration: expected ${declared}, got ${found}`
  }
  if (maxBatchSize === ready.maxBatchSize) return undefined
  return `its maxBatchSize differs from the declaration: expected ${maxBatchSize}, got ${ready.maxBatchSize}`
}

const printed = ({ name, datatype, dims, optional }: SpecMessage) =>
  `${name}${optional ? "?" : ""}: ${print(datatype, dims)}`
