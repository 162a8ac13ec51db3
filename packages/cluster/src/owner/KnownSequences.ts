/**
 * The sequences of one part that its owner knows, with the last call of each, so that a call that arrives again is not
 * executed again. The scheduler of the model has their states, and decides which of them live.
 */
import type { SequenceId } from "@nereid/core/internal/request/SequencePosition"
import { keyOf } from "../protocol/SequencePart.ts"

/** Bytes of a response up to which it is kept. */
const maxReply = 1024 * 1024

/** Bytes of all responses of a model that are kept. */
const maxReplies = 64 * 1024 * 1024

/** Sequences of a part from which on those that are over are looked for. */
const smallest = 64

/** The bytes of the responses that a model keeps, over all of its parts. */
export class ReplyBudget {
  #bytes = 0

  take(bytes: number): boolean {
    if (bytes > maxReply || this.#bytes + bytes > maxReplies) return false
    this.#bytes += bytes
    return true
  }

  give(bytes: number): void {
    this.#bytes -= bytes
  }
}

export interface KnownSequence {
  readonly id: SequenceId
  /** The last call that was executed, and succeeded. */
  lastCall: string | undefined
  /** Its response; undefined if it was too large. */
  lastReply: Uint8Array | undefined
  /** Calls that begin one after another, because each of them is stored before the next. */
  readonly waiting: Array<() => void>
  isBusy: boolean
}

export class KnownSequences {
  readonly #sequences = new Map<string, KnownSequence>()
  readonly #budget: ReplyBudget
  /** Ids of the sequences of the model that are live here. */
  readonly #live: () => Iterable<SequenceId>
  #limit = smallest

  constructor(budget: ReplyBudget, live: () => Iterable<SequenceId>) {
    this.#budget = budget
    this.#live = live
  }

  /** The sequence, which may be new. */
  get(id: SequenceId): KnownSequence {
    const key = keyOf(id)
    let known = this.#sequences.get(key)
    if (known === undefined) {
      if (this.#sequences.size >= this.#limit) this.#prune()
      known = { id, lastCall: undefined, lastReply: undefined, waiting: [], isBusy: false }
      this.#sequences.set(key, known)
    }
    return known
  }

  find(id: SequenceId): KnownSequence | undefined {
    return this.#sequences.get(keyOf(id))
  }

  all(): ReadonlyArray<KnownSequence> {
    return [...this.#sequences.values()]
  }

  executed(known: KnownSequence, call: string, reply: Uint8Array | undefined): void {
    this.#forgetReply(known)
    known.lastCall = call
    if (reply !== undefined && this.#budget.take(reply.length)) known.lastReply = reply
  }

  delete(known: KnownSequence): void {
    this.#forgetReply(known)
    this.#sequences.delete(keyOf(known.id))
  }

  clear(): void {
    for (const known of this.all()) this.delete(known)
  }

  /** Forgets those that are over. */
  #prune(): void {
    const live = new Set<SequenceId>(this.#live())
    for (const known of this.all()) if (!live.has(known.id) && !known.isBusy) this.delete(known)
    this.#limit = Math.max(smallest, 2 * this.#sequences.size)
  }

  #forgetReply(known: KnownSequence): void {
    if (known.lastReply !== undefined) this.#budget.give(known.lastReply.length)
    known.lastReply = undefined
  }
}
