/**
 * Keys of requests in the response cache. Two requests have the same key if the model cannot distinguish them: equal
 * tensors, and equal parameters and requested outputs if the model can read those.
 */
import type { Request } from "../request/Request.ts"
import * as Digest from "./Digest.ts"

export interface RequestKeyOptions {
  /** Whether a response may depend on more of a request than its inputs. */
  readonly readsRequest: boolean
  /** Names of the parameters that belong to the key. Default all but `priority` and `timeout`. */
  readonly parameters?: ReadonlyArray<string>
  /** A number that belongs to the key. Default: no number. */
  readonly epoch?: () => number
}

export const make = ({
  readsRequest,
  parameters: counted,
  epoch,
}: RequestKeyOptions): ((request: Request) => string) => {
  const digest = Digest.make(Digest.randomKey())
  const rest = remainder({ readsRequest, ...(counted && { parameters: counted }), ...(epoch && { epoch }) })
  return (request) => digest(bytesOf(request)) + rest(request)
}

/** The part of the key that does not depend on the bytes of the tensors. It is the same in every process. */
export const remainder = ({
  readsRequest,
  parameters: counted,
  epoch,
}: RequestKeyOptions): ((request: Request) => string) => {
  const names = counted && counted.toSorted()
  return (request) => {
    let key = epoch === undefined ? "" : `${epoch()};`
    // Lengths too: the length of a text does not follow from its shape.
    for (const tensor of request.inputs) key += tensor === undefined ? "-;" : `${tensor.shape},${tensor.bytes.length};`
    if (!readsRequest) return key
    const { parameters, requestedOutputs = [] } = request
    for (const name of names ?? Object.keys(parameters).toSorted()) {
      const value = parameters[name]
      if (value === undefined || (names === undefined && ofScheduling.has(name))) continue
      key += JSON.stringify([name, typeof value, String(value)])
    }
    return requestedOutputs.length === 0 ? key : key + JSON.stringify(requestedOutputs.toSorted())
  }
}

/** The bytes of the tensors, one after the other. */
export const bytesOf = function* ({ inputs }: Request) {
  for (const tensor of inputs) if (tensor !== undefined) yield tensor.bytes
}

/** Parameters that decide when a request is executed, but not its response. */
const ofScheduling: ReadonlySet<string> = new Set(["priority", "timeout"])
