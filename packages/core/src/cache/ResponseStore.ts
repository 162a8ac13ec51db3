/**
 * Stores responses by key, up to a number of bytes, and evicts the least recently used. Pure; ResponseCache.ts computes
 * the keys.
 */
import { noParameters, type Response } from "../request/Request.ts"
import { TypedTensor } from "../tensor/TypedTensor.ts"

/** Approximate bytes of an entry, excluding its keys, tensors and parameters. */
const overhead = 512

export class ResponseStore {
  readonly #maxBytes: number
  /** The least recently used first. */
  readonly #entries = new Map<string, { readonly response: Response; readonly bytes: number }>()
  #bytes = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  get bytes(): number {
    return this.#bytes
  }

  get(key: string): Response | undefined {
    const entry = this.#entries.get(key)
    if (entry === undefined) return undefined
    this.#entries.delete(key)
    this.#entries.set(key, entry)
    return entry.response
  }

  /** Takes ownership of the response. Ignores a response that exceeds the capacity. */
  set(key: string, response: Response): void {
    this.#delete(key)
    const bytes = size(key, response)
    if (bytes > this.#maxBytes) return
    for (const oldest of this.#entries.keys()) {
      if (this.#bytes + bytes <= this.#maxBytes) break
      this.#delete(oldest)
    }
    this.#entries.set(key, { response, bytes })
    this.#bytes += bytes
  }

  clear(): void {
    this.#entries.clear()
    this.#bytes = 0
  }

  #delete(key: string): void {
    const entry = this.#entries.get(key)
    if (entry === undefined) return
    this.#entries.delete(key)
    this.#bytes -= entry.bytes
  }
}

const size = (key: string, { outputs, parameters }: Response): number => {
  let bytes = overhead + key.length * 2
  for (const tensor of outputs) bytes += overhead + (tensor?.bytes.length ?? 0)
  if (parameters === noParameters) return bytes
  for (const [name, value] of Object.entries(parameters)) bytes += overhead + (name.length + String(value).length) * 2
  return bytes
}

/** Copies the tensors, so that changes by a caller or a handler do not affect the stored response. */
export const copy = ({ outputs, parameters }: Response): Response => ({
  outputs: outputs.map(
    (tensor) => tensor && new TypedTensor(tensor.datatype, tensor.shape, new Uint8Array(tensor.bytes)),
  ),
  parameters,
})
