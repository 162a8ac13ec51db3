/** Remembers why sequences ended, for the error of a request that comes too late. Bounded: the oldest are forgotten. */
import type { SequenceEnd, SequenceId } from "../request/SequencePosition.ts"

/** Why a sequence takes no further request. One that a START replaces goes on under its id. */
export type FinalEnd = Exclude<SequenceEnd, "replaced">

export interface EndedSequence {
  readonly reason: FinalEnd
  /** Milliseconds that an expired sequence was idle. */
  readonly idleMillis: number | undefined
}

export class EndedSequences {
  readonly #limit: number
  readonly #ended = new Map<SequenceId, EndedSequence & { readonly place: number }>()
  /** The ids in a ring, of which the place of the next one has the oldest. */
  readonly #ids: Array<SequenceId> = []
  #next = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  add(id: SequenceId, ended: EndedSequence): void {
    const place = this.#next
    const oldest = this.#ids[place]
    // An id that has ended again has a later place.
    if (oldest !== undefined && this.#ended.get(oldest)?.place === place) this.#ended.delete(oldest)
    this.#ids[place] = id
    this.#ended.set(id, { ...ended, place })
    this.#next = (place + 1) % this.#limit
  }

  get(id: SequenceId): EndedSequence | undefined {
    return this.#ended.get(id)
  }
}
