/**
 * The parts of a model's sequences: each is an entity of the cluster, with the sequences whose ids have its number.
 *
 * An entity for each sequence would stay resident until it is idle for as long as a sequence may be, although most
 * sequences end before that. The sequences of a part move together, as the entities of a shard do.
 */
import type { SequenceId } from "@nereid/core/internal/request/SequencePosition"

/** Parts of each model. All runners must agree, and stored sequences have the number of their part. */
export const count = 1024

/** Datatype and id. `5n` and `"5"` are different ids. */
export const keyOf = (id: SequenceId): string => (typeof id === "string" ? `BYTES ${id}` : `UINT64 ${id}`)

/** The part of a sequence: FNV-1a of its key in UTF-8. Requests without an id, which are refused, go to the first. */
export const partOf = (id: SequenceId | undefined): number => {
  if (id === undefined) return 0
  let hash = 0x811c9dc5
  for (const byte of encoder.encode(keyOf(id))) hash = Math.imul(hash ^ byte, 0x01000193)
  // The low bits of FNV-1a depend on the low bits of its input alone.
  return ((hash >>> 16) ^ hash) & (count - 1)
}

const encoder = new TextEncoder()
