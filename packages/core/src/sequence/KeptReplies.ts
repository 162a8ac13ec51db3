/** The last reply of each sequence, within a limit of bytes. A reply beyond the limit is not kept. Pure. */
import { Result } from "effect"
import type { InferenceError } from "../error/InferenceError.ts"
import type { Response } from "../request/Request.ts"
import { TypedTensor } from "../tensor/TypedTensor.ts"

export type Outcome = Result.Result<Response, InferenceError>

export interface KeptReply {
  readonly number: number
  /** Of the request's inputs. */
  readonly key: string
  /** Undefined if it was not kept. */
  readonly outcome: Outcome | undefined
}

export class KeptReplies<K> {
  readonly #maxBytes: number
  readonly #replies = new Map<K, KeptReply & { readonly bytes: number }>()
  #bytes = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  get(sequence: K): KeptReply | undefined {
    return this.#replies.get(sequence)
  }

  /** Replaces the reply of the sequence, unless that one has a higher number. */
  keep(sequence: K, reply: KeptReply): void {
    if ((this.#replies.get(sequence)?.number ?? 0) > reply.number) return
    this.delete(sequence)
    const bytes = reply.outcome === undefined ? 0 : bytesOf(reply.outcome)
    const isKept = this.#bytes + bytes <= this.#maxBytes
    this.#replies.set(sequence, {
      ...reply,
      outcome: isKept && reply.outcome !== undefined ? copy(reply.outcome) : undefined,
      bytes: isKept ? bytes : 0,
    })
    if (isKept) this.#bytes += bytes
  }

  delete(sequence: K): void {
    this.#bytes -= this.#replies.get(sequence)?.bytes ?? 0
    this.#replies.delete(sequence)
  }
}

const bytesOf = (outcome: Outcome): number => {
  if (Result.isFailure(outcome)) return 0
  let bytes = 0
  for (const tensor of outcome.success.outputs) bytes += tensor?.bytes.length ?? 0
  return bytes
}

/** Outputs are views of their batch, whose memory would live as long as the reply. */
const copy = (outcome: Outcome): Outcome =>
  Result.map(outcome, (response) => ({
    ...response,
    release: undefined,
    outputs: response.outputs.map(
      (tensor) => tensor && new TypedTensor(tensor.datatype, tensor.shape, tensor.bytes.slice()),
    ),
  }))
