/**
 * Computes the key that requests must share to be batched together: their shapes, if their tensors are joined, and the
 * values of the model's `groupBy` fields.
 */
import type { Batching, RaggedDim } from "../model/Batching.ts"
import type { Request } from "../request/Request.ts"
import * as Padding from "./Padding.ts"
import { isDynamic, type Signature } from "../tensor/TensorSpec.ts"
import { sameRow, type Shape, slice, type TypedTensor } from "../tensor/TypedTensor.ts"

export type GroupKey = (request: Request) => string

/**
 * Groups requests by the inputs that are present, and by the extents of their dynamic and symbolic dims; for ragged
 * dims only by the bucket. A constant key if the signature fixes both.
 */
export const byShapes = ({ inputs }: Signature, ragged: ReadonlyArray<RaggedDim>): GroupKey | undefined => {
  const varying = inputs.flatMap(({ optional, default: preset, dims }, position) => {
    if (!(optional && preset === undefined) && !dims.some(isDynamic)) return []
    return [{ position, ragged: dims.map((name) => ragged.find((dim) => dim.name === name)) }]
  })
  if (varying.length === 0) return undefined
  // Most requests have the shapes of the one before them: its key is theirs.
  let shapes: Array<Shape | undefined> | undefined
  let known = ""
  return ({ inputs }) => {
    if (shapes !== undefined && agree(shapes, inputs)) return known
    shapes = inputs.map((tensor) => tensor?.shape)
    let key = ""
    for (const { position, ragged } of varying) {
      const shape = inputs[position]?.shape
      if (shape === undefined) key += "-"
      else for (const [axis, dim] of ragged.entries()) key += `${extentKey(shape[axis + 1] ?? 0, dim)},`
      key += ";"
    }
    return (known = key)
  }
}

/** The signature for `byShapes`, ignoring the shapes of the inputs at the positions in `differing`. */
export const agreeing = (signature: Signature, differing: ReadonlySet<number>): Signature => ({
  ...signature,
  inputs: signature.inputs.map((spec, position) => (differing.has(position) ? { ...spec, dims: [] } : spec)),
})

const agree = (shapes: ReadonlyArray<Shape | undefined>, inputs: Request["inputs"]): boolean => {
  for (let index = 0; index < shapes.length; index++) {
    const one = shapes[index]
    const other = inputs[index]?.shape
    if (one === undefined || other === undefined ? one !== other : !sameRow(one, other)) return false
  }
  return true
}

const extentKey = (extent: number, dim: RaggedDim | undefined): number | string =>
  dim === undefined ? extent : (Padding.bucket(dim, extent) ?? "*")

/** The values of `groupBy`: bytes of inputs, of which all rows of a request are the same, and parameters. */
export const byValues = ({ inputs, parameters }: Batching["groupBy"]): GroupKey | undefined => {
  if (inputs.length === 0 && parameters.length === 0) return undefined
  return (request) => {
    let key = rowKey(inputs, request, 0)
    for (const name of parameters) {
      const value = request.parameters[name]
      const text = String(value)
      key += `${typeof value}${text.length}:${text}`
    }
    return key
  }
}

/** Both. */
export const combine = (one: GroupKey | undefined, other: GroupKey | undefined): GroupKey => {
  if (one === undefined || other === undefined) return one ?? other ?? anything
  return (request) => `${one(request)}|${other(request)}`
}

const anything = () => ""

/**
 * The rows of a request by their values in `groupBy`'s inputs, where these differ among them: then it is executed in
 * these parts. Undefined if all rows agree.
 */
export const parts = (
  { inputs }: Pick<Batching["groupBy"], "inputs">,
  request: Request,
): ReadonlyArray<ReadonlyArray<number>> | undefined => {
  if (request.rows === 1) return undefined
  const rows = new Map<string, Array<number>>()
  for (let row = 0; row < request.rows; row++) {
    const key = rowKey(inputs, request, row)
    const same = rows.get(key)
    if (same === undefined) rows.set(key, [row])
    else same.push(row)
  }
  return rows.size === 1 ? undefined : [...rows.values()]
}

/** With the length in front, so that no two values run together. */
const rowKey = (positions: ReadonlyArray<number>, { inputs }: Request, row: number): string => {
  let key = ""
  for (const position of positions) {
    const tensor = inputs[position]
    key += tensor === undefined ? "-" : bytesKey(tensor, row)
  }
  return key
}

// Of 256 characters, one for each byte.
const latin1 = new TextDecoder("latin1")

const bytesKey = (tensor: TypedTensor, row: number): string => {
  const { bytes } = tensor.shape[0] === 1 ? tensor : slice(tensor, row, row + 1)
  return `${bytes.length}:${latin1.decode(bytes)}`
}
