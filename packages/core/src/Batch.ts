/**
 * Requests that are executed together: which of them agree, and how their rows become one tensor per input and back. What
 * their tensors lack to agree is Padding.ts's. Pure: no clock, no fiber. When a batch is closed is the scheduler's business.
 */
import type { RaggedDim } from "./Batching.ts"
import type { Request, Response } from "./Inference.ts"
import { noParameters } from "./Inference.ts"
import * as Padding from "./Padding.ts"
import { isDynamic, type Signature } from "./TensorSpec.ts"
import { concat, sameRow, type Shape, split as splitRows, type TypedTensor } from "./TypedTensor.ts"

export interface Batch {
  readonly requests: ReadonlyArray<Request>
  /** The sum of the requests' rows. */
  readonly rows: number
  /** What their tensors are filled up to; undefined where they are as they came. */
  readonly padding: Padding.Padding | undefined
}

export const make = (requests: ReadonlyArray<Request>, padding?: Padding.Padding): Batch => {
  let rows = 0
  for (const request of requests) rows += request.rows
  return { requests, rows, padding }
}

/** Some of its requests, in their order, filled up to the same. */
export const select = ({ requests, padding }: Batch, indexes: ReadonlyArray<number>): Batch =>
  make(
    indexes.flatMap((index) => requests[index] ?? []),
    padding && Padding.select(padding, indexes),
  )

/** The rows of its tensors: those of its requests, and those that fill it up. */
export const totalRows = ({ rows, padding }: Batch): number => padding?.rows ?? rows

/**
 * The key on which requests must agree to share a batch: which inputs are present, and the extents of their dynamic and
 * symbolic dims, of ragged ones only the bucket. The same constant for all requests where the signature fixes both.
 */
export const groupKey = (
  signature: Signature,
  batching: boolean,
  ragged: ReadonlyArray<RaggedDim> = [],
): ((request: Request) => string) => {
  const varying = signature.inputs.flatMap(({ optional, dims }, position) => {
    if (!optional && !dims.some(isDynamic)) return []
    return [{ position, ragged: dims.map((name) => ragged.find((dim) => dim.name === name)) }]
  })
  if (varying.length === 0 || !batching) return () => ""
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

/** One tensor per input with all rows along axis 0: the request's own for a single one that fits, else copied once. */
export const inputs = ({ requests, padding }: Batch): ReadonlyArray<TypedTensor | undefined> => {
  const [first] = requests
  if (first === undefined) return []
  if (requests.length === 1 && padding === undefined) return first.inputs
  return first.inputs.map((tensor, index) => {
    if (tensor === undefined) return undefined
    const all: Array<TypedTensor> = []
    for (const { inputs } of requests) {
      const tensor = inputs[index]
      if (tensor !== undefined) all.push(tensor)
    }
    return joined(padding === undefined ? all : Padding.fill(padding, index, all))
  })
}

const joined = ([first, ...rest]: ReadonlyArray<TypedTensor>): TypedTensor | undefined =>
  first && concat([first, ...rest])

/** The outputs of the whole batch, cut into the rows of each request and to its extents; views, where no byte moves. */
export const split = ({ requests, padding }: Batch, outputs: ReadonlyArray<TypedTensor>): ReadonlyArray<Response> => {
  if (requests.length === 1 && padding === undefined) return [{ outputs, parameters: noParameters }]
  const rows = requests.map((request) => request.rows)
  const columns = outputs.map((tensor, position) => {
    const parts = splitRows(tensor, rows)
    return padding === undefined ? parts : Padding.cut(padding, position, parts)
  })
  return requests.map((_, index) => {
    const parts: Array<TypedTensor> = []
    for (const column of columns) {
      const part = column[index]
      if (part !== undefined) parts.push(part)
    }
    return { outputs: parts, parameters: noParameters }
  })
}
