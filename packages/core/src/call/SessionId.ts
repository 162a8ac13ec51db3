/** The ids that callers choose for their sessions. */
import type { SequenceId } from "../request/SequencePosition.ts"

/** Bytes of an id that is a text, as on the server. */
const longest = 128

/**
 * The id that a caller has chosen.
 * @throws TypeError if no sequence may have it
 */
export const chosen = (id: SequenceId): SequenceId => {
  if (typeof id === "bigint") {
    if (id > 0n && id < 2n ** 64n) return id
    throw new TypeError(`The id of a session must be from 1 to 2^64 - 1, but ${id} was given.`)
  }
  const { length } = new TextEncoder().encode(id)
  if (length > 0 && length <= longest) return id
  throw new TypeError(`The id of a session must have from 1 to ${longest} bytes, but one of ${length} was given.`)
}
