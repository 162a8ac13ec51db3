/** Extents of variable dims. A dim with a name has one extent in all inputs, as the server requires. */
import type { Field } from "../../api/Model.ts"
import { isVariable, keyOf } from "../tensor/Shape.ts"

export interface Extents {
  readonly get: (key: string, fallback: number) => number
  readonly set: (key: string, extent: number) => void
}

export interface VariableDim {
  /** Of this input only, unless the dim has a name. */
  readonly key: string
  readonly title: string
}

export const variableDims = ({ name, dims }: Pick<Field, "name" | "dims">): ReadonlyArray<VariableDim> =>
  dims.flatMap((dim, axis) => (isVariable(dim) ? [dimOf(name, dim, axis)] : []))

export const dimOf = (input: string, dim: number | string | undefined, axis: number): VariableDim => {
  const key = keyOf(dim, axis)
  return typeof dim === "string" ? { key, title: dim } : { key: `${input}/${key}`, title: key }
}
