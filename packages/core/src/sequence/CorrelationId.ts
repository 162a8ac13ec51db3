/** The parameters by which a request names its sequence. wire/KnownParameters.ts checks their types. */
import type { Parameters } from "../request/Request.ts"
import type { SequenceId } from "../request/SequencePosition.ts"

/** The id; undefined for a request without one: 0 and the empty string are none. */
export const idOf = ({ sequence_id: id }: Parameters): SequenceId | undefined => {
  // gRPC has signed integers of 64 bits, of which a negative one is its unsigned counterpart.
  if (typeof id === "bigint") return id > 0n ? id : id === 0n ? undefined : BigInt.asUintN(64, id)
  return typeof id === "string" && id !== "" ? id : undefined
}

export const isStart = ({ sequence_start: start }: Parameters): boolean => start === true

export const isEnd = ({ sequence_end: end }: Parameters): boolean => end === true
