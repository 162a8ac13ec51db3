/** The replica of each sequence: its first request chooses one, and those behind it follow. */
import type { Parameters } from "@nereid/core/internal/request/Request"
import type { Replica } from "./Replica.ts"

/** `5n` and `"5"` are different ids. */
export type SequenceId = bigint | string

/** Sequences that are remembered. The one that was idle for longest is forgotten first. */
const maxSequences = 100_000

/** The sequence of a request by its parameters; undefined for a request without one. */
export const sequenceOf = ({ sequence_id: id }: Parameters): SequenceId | undefined =>
  (typeof id === "bigint" && id !== 0n) || (typeof id === "string" && id !== "") ? id : undefined

export class SequenceAffinity {
  readonly #replicas = new Map<SequenceId, Replica>()
  readonly #onUnused: (replica: Replica) => void

  /** `onUnused` takes a replica whose last sequence is over. */
  constructor(onUnused: (replica: Replica) => void) {
    this.#onUnused = onUnused
  }

  get size(): number {
    return this.#replicas.size
  }

  /** Returns the replica, and counts as a use of the sequence. */
  find(id: SequenceId): Replica | undefined {
    const replica = this.#replicas.get(id)
    if (replica === undefined) return undefined
    this.#replicas.delete(id)
    this.#replicas.set(id, replica)
    return replica
  }

  set(id: SequenceId, replica: Replica): void {
    this.forget(id)
    replica.sequences += 1
    this.#replicas.set(id, replica)
    if (this.#replicas.size <= maxSequences) return
    for (const [oldest] of this.#replicas) return this.forget(oldest)
  }

  forget(id: SequenceId): void {
    const replica = this.#replicas.get(id)
    if (replica === undefined) return
    this.#replicas.delete(id)
    replica.sequences -= 1
    if (replica.sequences === 0) this.#onUnused(replica)
  }
}
