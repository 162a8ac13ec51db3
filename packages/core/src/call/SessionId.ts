/** The ids that callers choose for their sessions. */
import type { SequenceId } from "../request/SequencePosition.ts"

/** Bytes of an id that is a text, as on the server. */
const longest = 128

/**
 * The id that a caller has chosen.
 * @throws TypeError if no sequence may have it
 */
export const chosen = (id: SequenceId): SequenceId => {
  const { length } = new TextEncoder().encode(String(id))
  const isValid = typeof id === "bigint" ? id > 0n && id < 2n ** 64n : length > 0 && length <= longest
  if (isValid) return id
  const given = typeof id === "bigint" ? id : `a text of ${length} bytes`
  throw new TypeError(`The id of a session is from 1 to 2^64 - 1, or a text of 1 to ${longest} bytes, not ${given}.`)
}
