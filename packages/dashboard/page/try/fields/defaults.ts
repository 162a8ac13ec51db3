/** The values that fields start with: the declared default of an input, if it has one. */
import type { Field } from "../../api/Model.ts"
import { kindOf } from "../tensor/Datatype.ts"
import { elementCount } from "../tensor/Tensor.ts"

/** The elements of a declared default; one element stands for all. */
export const defaultElements = ({ default: given }: Field): ReadonlyArray<string> | undefined => {
  if (typeof given !== "object" || given === null) return undefined
  if ("element" in given) return [String(given.element)]
  if ("data" in given && Array.isArray(given.data)) return given.data.map(String)
  return undefined
}

export const defaultText = (field: Field): string => defaultElements(field)?.[0] ?? ""

/** Variable dims of values that are written, before the user changes them. */
export const usualExtent = 4

/** Larger tensors start with a fill. */
const maxWritten = 64

/** Text for all values; undefined for a tensor too large to write. */
export const startingValues = (field: Field): string | undefined => {
  const shape = field.dims.map((dim) => (typeof dim === "number" && dim >= 0 ? dim : usualExtent))
  const count = elementCount(shape)
  if (count > maxWritten) return undefined
  const elements = defaultElements(field)
  const kind = kindOf(field.datatype)
  const zero = kind === "bytes" ? "text" : kind === "boolean" ? "false" : "0"
  const all = Array.from({ length: count }, (_, index) => elements?.[index] ?? elements?.[0] ?? zero)
  if (kind === "bytes") return JSON.stringify(nested(all, shape))
  return shape.length === 1 ? all.join(" ") : JSON.stringify(nested(all, shape)).replaceAll('"', "")
}

const nested = (values: ReadonlyArray<unknown>, shape: ReadonlyArray<number>): ReadonlyArray<unknown> => {
  const extent = shape.at(-1) ?? 1
  if (shape.length <= 1) return values
  const rows = Array.from({ length: values.length / extent }, (_, row) =>
    values.slice(row * extent, (row + 1) * extent),
  )
  return nested(rows, shape.slice(0, -1))
}
