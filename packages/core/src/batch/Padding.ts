/**
 * Pads the tensors of a batch, so that their shapes agree or have a size that the model supports. Removes the padding
 * from the outputs.
 *
 *   request A  a a a        ─┐  a a a .  ─┐
 *   request B  b b b b       ├► b b b b   ├─ rows: the last one again
 *                           ─┘  b b b b  ─┘  ragged axes: an element of the model's choice
 */
import type { Batching, RaggedAxis, RaggedDim } from "../model/Batching.ts"
import type { Request } from "../request/Request.ts"
import { resize } from "../tensor/Resize.ts"
import { elementCount, slice, type TypedTensor } from "../tensor/TypedTensor.ts"

/** Elements of tensors: those of requests, and those that fill a batch up. */
export interface ElementCounts {
  given: number
  added: number
}

export interface Padding {
  /** Of every tensor, along axis 0. */
  readonly rows: number
  /** The ragged dims whose extents differ or are not a bucket size. */
  readonly dims: ReadonlyArray<PaddedDim>
}

interface PaddedDim {
  readonly dim: RaggedDim
  readonly extent: number
  /** Extent of each request before padding. */
  readonly extents: ReadonlyArray<number>
}

/** How the requests of a batch are padded; undefined for a batch that needs none. */
export type Rule = (requests: ReadonlyArray<Request>) => Padding | undefined

/** The rule that a model declares; undefined for a model that never pads. */
export const rule = ({ padTo, ragged }: Pick<Batching, "padTo" | "ragged">): Rule | undefined => {
  if (padTo.length === 0 && ragged.length === 0) return undefined
  return (requests) => {
    let rowCount = 0
    for (const request of requests) rowCount += request.rows
    const rows = padTo.find((size) => size >= rowCount) ?? rowCount
    const dims = ragged.flatMap((dim) => padded(dim, requests) ?? [])
    return rows === rowCount && dims.length === 0 ? undefined : { rows, dims }
  }
}

/** The least of the dim's buckets that holds the extent, or the extent itself; undefined if all are one bucket. */
export const bucket = ({ buckets }: RaggedDim, extent: number): number | undefined =>
  buckets.length === 0 ? undefined : (buckets.find((bucket) => bucket >= extent) ?? extent)

const padded = (dim: RaggedDim, requests: ReadonlyArray<Request>): PaddedDim | undefined => {
  const extents = requests.map(({ inputs }) => extentOf(dim, inputs))
  const longest = Math.max(...extents)
  const extent = (dim.to === "bucket" ? bucket(dim, longest) : undefined) ?? longest
  return extents.every((one) => one === extent) ? undefined : { dim, extent, extents }
}

/**
 * The extent of the dim, which was checked to be equal in all its inputs. 0 if the request, and thus all others,
 * omitted the inputs.
 */
const extentOf = (dim: RaggedDim, inputs: Request["inputs"]): number => {
  for (const { position, axis } of dim.inputs) {
    const extent = inputs[position]?.shape[axis]
    if (extent !== undefined) return extent
  }
  return 0
}

/** Of some of the requests, in their order. */
export const select = ({ rows, dims }: Padding, indexes: ReadonlyArray<number>): Padding => ({
  rows,
  dims: dims.map(({ extents, ...dim }) => ({ ...dim, extents: indexes.map((index) => extents[index] ?? 0) })),
})

/** Of the inputs of these requests: elements that are theirs, and those that they are filled up with. */
export const elements = (requests: ReadonlyArray<Request>, padding: Padding | undefined): ElementCounts => {
  let given = 0
  let rows = 0
  for (const request of requests) {
    rows += request.rows
    for (const tensor of request.inputs) if (tensor !== undefined) given += elementCount(tensor.shape)
  }
  const [first] = requests
  if (padding === undefined || first === undefined) return { given, added: 0 }
  let filled = 0
  for (const [position, tensor] of first.inputs.entries()) {
    if (tensor === undefined) continue
    const shape = [...tensor.shape]
    shape[0] = Math.max(rows, padding.rows)
    for (const { dim, extent } of padding.dims) for (const { axis } of at(dim.inputs, position)) shape[axis] = extent
    filled += elementCount(shape)
  }
  return { given, added: filled - given }
}

/** The padded tensors of one input, by request, ready to be joined. */
export const fill = (
  { rows, dims }: Padding,
  position: number,
  tensors: ReadonlyArray<TypedTensor>,
): Array<TypedTensor> => {
  const filled = tensors.map((tensor) => {
    let result = tensor
    for (const { dim, extent } of dims) {
      for (const { axis, element } of at(dim.inputs, position)) result = resize(result, axis, extent, element)
    }
    return result
  })
  const last = filled.at(-1)
  if (last === undefined) return filled
  const rowCount = filled.reduce((sum, { shape: [rows = 0] }) => sum + rows, 0)
  const [end = 0] = last.shape
  const repeated = slice(last, end - 1, end)
  for (let row = rowCount; row < rows; row++) filled.push(repeated)
  return filled
}

/** The tensors of one output, by request, as each is to have them. */
export const cut = (
  { dims }: Padding,
  position: number,
  tensors: ReadonlyArray<TypedTensor>,
): ReadonlyArray<TypedTensor> =>
  tensors.map((tensor, index) => {
    let result = tensor
    for (const { dim, extents } of dims) {
      for (const { axis, element } of at(dim.outputs, position)) {
        result = resize(result, axis, extents[index] ?? 0, element)
      }
    }
    return result
  })

/**
 * The first output that cannot be cut, because its extent differs from that of the padded input; undefined if all can.
 */
export const problem = (
  { dims }: Padding,
  outputs: ReadonlyArray<TypedTensor>,
): { readonly position: number; readonly message: string } | undefined => {
  for (const { dim, extent } of dims) {
    for (const { position, axis } of dim.outputs) {
      const got = outputs[position]?.shape[axis]
      if (got === undefined || got === extent) continue
      return { position, message: `wrong dims: '${dim.name}' is ${extent} in the inputs of the batch, got ${got}` }
    }
  }
  return undefined
}

const at = (axes: ReadonlyArray<RaggedAxis>, position: number) => axes.filter((axis) => axis.position === position)
