/**
 * Combines requests into one batch: joins their rows into one tensor per input, and splits the outputs again. Pure: no
 * clock, no fiber.
 *
 * Grouping.ts decides which requests may share a batch, Padding.ts makes their shapes agree, and the scheduler closes
 * batches.
 */
import type { Tracer } from "effect"
import type { Request, Response } from "../request/Request.ts"
import { noParameters } from "../request/Request.ts"
import * as Padding from "./Padding.ts"
import { concat, split as splitRows, TypedTensor } from "../tensor/TypedTensor.ts"

export interface Batch {
  readonly requests: ReadonlyArray<Request>
  /** The sum of the requests' rows. */
  readonly rows: number
  /** Padding of the tensors; undefined if they are unpadded. */
  readonly padding: Padding.Padding | undefined
  /**
   * Position of the first output that is copied before `settle` returns, or before the instance reclaims the memory
   * that it has lent. An instance may give it and those behind it as views of memory that it uses again. Default: none,
   * so callers may keep all outputs.
   */
  readonly copiedFrom?: number
  /**
   * Tensors of all rows, behind the inputs of the requests: for an instance that `takesJoined`. It returns the outputs
   * from `copiedFrom` on as `joined` of its result, and those before in the outcomes. Absent for an unjoined batch.
   */
  readonly joined?: ReadonlyArray<TypedTensor>
  /** Parent span for the code that executes the batch; absent if none of its requests is traced. */
  readonly span?: Tracer.Span
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

/** The same batch with copies of its inputs, for an instance that does not read them at once. */
export const withOwnInputs = (batch: Batch): Batch => ({ ...batch, requests: batch.requests.map(own) })

/** The same batch with copies of the inputs whose memory is freed behind the response, for code that may keep them. */
export const withLastingInputs = (batch: Batch): Batch =>
  batch.requests.some(isFreed)
    ? { ...batch, requests: batch.requests.map((request) => (isFreed(request) ? own(request) : request)) }
    : batch

const isFreed = ({ memory }: Request): boolean => memory?.isCopied() === true

const own = (request: Request): Request => ({
  ...request,
  inputs: request.inputs.map(
    (tensor) => tensor && new TypedTensor(tensor.datatype, tensor.shape, new Uint8Array(tensor.bytes)),
  ),
})

/** The rows of its tensors: those of its requests, and those that fill it up. */
export const totalRows = ({ rows, padding }: Batch): number => padding?.rows ?? rows

/** One tensor per input with all rows along axis 0: the request's own for a single one that fits, else copied once. */
export const inputs = ({ requests, padding, joined }: Batch): ReadonlyArray<TypedTensor | undefined> => {
  const [first] = requests
  if (first === undefined) return []
  if (requests.length === 1 && padding === undefined) return joined ? first.inputs.concat(joined) : first.inputs
  const all = first.inputs.map((tensor, index) => {
    if (tensor === undefined) return undefined
    const all: Array<TypedTensor> = []
    for (const { inputs } of requests) {
      const tensor = inputs[index]
      if (tensor !== undefined) all.push(tensor)
    }
    const parts = padding === undefined ? all : Padding.fill(padding, index, all)
    return isFilled(parts) ? concat(parts) : undefined
  })
  return joined === undefined ? all : all.concat(joined)
}

const isFilled = (tensors: Array<TypedTensor>): tensors is [TypedTensor, ...Array<TypedTensor>] => tensors.length > 0

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
