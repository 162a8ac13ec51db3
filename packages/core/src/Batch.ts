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

export const make = (requests: ReadonlyArray<Request>): Batch => {
  let rows = 0
  for (const request of requests) rows += request.rows
  return { requests, rows }
}

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
export const inputs = ({ requests }: Batch): ReadonlyArray<TypedTensor | undefined> => {
  const [first] = requests
  if (first === undefined) return []
  if (requests.length === 1) return first.inputs
  return first.inputs.map((tensor, index) => {
    if (tensor === undefined) return undefined
    const all: [TypedTensor, ...Array<TypedTensor>] = [tensor]
    for (let other = 1; other < requests.length; other++) {
      const tensor = requests[other]?.inputs[index]
      if (tensor !== undefined) all.push(tensor)
    }
    return concat(all)
  })
}

/** The outputs of the whole batch, cut into the rows of each request; views. */
export const split = ({ requests }: Batch, outputs: ReadonlyArray<TypedTensor>): ReadonlyArray<Response> => {
  if (requests.length === 1) return [{ outputs, parameters: noParameters }]
  const rows = requests.map((request) => request.rows)
  const responses = requests.map((): Array<TypedTensor> => [])
  for (const tensor of outputs) splitRows(tensor, rows).forEach((part, index) => responses[index]?.push(part))
  return responses.map((outputs) => ({ outputs, parameters: noParameters }))
}
