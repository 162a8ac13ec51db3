/**
 * Requests that are executed together: which of them agree, and how their rows become one tensor per input and back.
 * Pure: no clock, no fiber. When a batch is closed is the scheduler's business.
 */
import type { Request, Response } from "./Inference.ts"
import { noParameters } from "./Inference.ts"
import { isDynamic, type Signature } from "./TensorSpec.ts"
import { concat, split as splitRows, type TypedTensor } from "./TypedTensor.ts"

export interface Batch {
  readonly requests: ReadonlyArray<Request>
  /** The sum of the requests' rows. */
  readonly rows: number
}

export const make = (requests: ReadonlyArray<Request>): Batch => ({
  requests,
  rows: requests.reduce((rows, request) => rows + request.rows, 0),
})

/**
 * The key on which requests must agree to share a batch: which inputs are present, and the extents of their dynamic and
 * symbolic dims. The same constant for all requests where the signature fixes both.
 */
export const groupKey = (signature: Signature, batching: boolean): ((request: Request) => string) => {
  const varying = signature.inputs.flatMap((spec, index) => (spec.optional || spec.dims.some(isDynamic) ? [index] : []))
  if (varying.length === 0 || !batching) return () => ""
  return (request) => {
    let key = ""
    for (const index of varying) key += `${request.inputs[index]?.shape.slice(1).join(",") ?? "-"};`
    return key
  }
}

/** One tensor per input with all rows along axis 0: the request's own for a single one, else copied once. */
export const inputs = (batch: Batch): ReadonlyArray<TypedTensor | undefined> => {
  const [first, ...rest] = batch.requests
  if (first === undefined) return []
  if (rest.length === 0) return first.inputs
  return first.inputs.map((tensor, index) => {
    if (tensor === undefined) return undefined
    const others = rest.flatMap((request) => request.inputs[index] ?? [])
    return concat([tensor, ...others])
  })
}

/** The outputs of the whole batch, cut into the rows of each request; views. */
export const split = (batch: Batch, outputs: ReadonlyArray<TypedTensor>): ReadonlyArray<Response> => {
  if (batch.requests.length === 1) return [{ outputs, parameters: noParameters }]
  const rows = batch.requests.map((request) => request.rows)
  const parts = outputs.map((tensor) => splitRows(tensor, rows))
  return batch.requests.map((_, index) => ({
    outputs: parts.flatMap((tensors) => tensors[index] ?? []),
    parameters: noParameters,
  }))
}
