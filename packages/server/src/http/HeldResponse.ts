/** Counts a response against the memory budget until it has been sent. */
import type { HttpCall } from "./HttpCall.ts"
import { sendError } from "../port/HttpReply.ts"

/** Size of a response, in bytes, that is not counted: it is written at once in nearly all cases. */
const uncounted = 8 * 1024

/** Takes `size` bytes until the response has closed. Returns false, after an error response, if there is no room. */
export const hold = ({ response, memory }: HttpCall, size: number): boolean => {
  if (size <= uncounted) return true
  const full = memory.take(size)
  if (full === undefined) response.on("close", () => memory.give(size))
  else sendError(response, full)
  return full === undefined
}
