/** Declared dims, and shapes that fit them. */
import { Invalid } from "../Invalid.ts"

/** A variable dim is -1, or its name. */
export type Dims = ReadonlyArray<number | string>

export const isVariable = (dim: number | string | undefined): boolean => typeof dim !== "number" || dim < 0

export const shown = (dims: Dims): string => `[${dims.map((dim) => (dim === -1 ? "?" : dim)).join(", ")}]`

const matches = (shape: ReadonlyArray<number>, dims: Dims): boolean =>
  shape.length === dims.length && dims.every((dim, axis) => isVariable(dim) || dim === shape[axis])

/**
 * The shape of one sample, from that of given data: the same, or without a batch dimension of 1, or with other
 * dimensions of 1.
 */
export const fit = (shape: ReadonlyArray<number>, dims: Dims): ReadonlyArray<number> => {
  if (matches(shape, dims)) return shape
  if (shape[0] === 1 && matches(shape.slice(1), dims)) return shape.slice(1)
  const extents = shape.filter((extent) => extent !== 1)
  const wanted = dims.filter((dim) => dim !== 1)
  if (matches(extents, wanted)) {
    let next = 0
    return dims.map((dim) => (dim === 1 ? 1 : (extents[next++] ?? 1)))
  }
  throw new Invalid(`the shape ${shown(shape)} does not fit ${shown(dims)}`)
}

/** The shape that a number of elements has, where at most one dim is variable. */
export const complete = (count: number, dims: Dims): ReadonlyArray<number> => {
  const variable = dims.filter(isVariable).length
  const fixed = dims.reduce<number>(
    (product, dim) => (typeof dim === "number" && dim >= 0 ? product * dim : product),
    1,
  )
  if (variable > 1) throw new Invalid(`${shown(dims)} has ${variable} variable dims: write nested lists as JSON`)
  if (variable === 0 && count !== fixed) throw new Invalid(`${shown(dims)} has ${fixed} values, but these are ${count}`)
  if (variable === 1 && (fixed === 0 ? count > 0 : count % fixed !== 0)) {
    throw new Invalid(`${shown(dims)} needs a multiple of ${fixed} values, but these are ${count}`)
  }
  return dims.map((dim) => (typeof dim === "number" && dim >= 0 ? dim : fixed === 0 ? 0 : count / fixed))
}

/** A name is the same dim in all inputs. */
export const keyOf = (dim: number | string | undefined, axis: number): string =>
  typeof dim === "string" ? dim : `axis ${axis}`
