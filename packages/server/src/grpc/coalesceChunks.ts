/**
 * Joins the chunks of a request body for Connect, whose reader scans all chunks of a message again for each new one. A
 * message in single bytes would block it for minutes. Joined chunks grow with the message, so a message has few of
 * them. A complete message is passed on at once.
 */
import { prefixLength } from "@nereid/core/internal/grpc/GrpcFrame"
import type { Envelopes } from "./Envelopes.ts"

/**
 * Bytes of the smallest chunk of a message behind its prefix. The prefix is passed on at once, as its length may be
 * refused.
 */
const minBytes = 64 * 1024

/** `envelopes` follows the messages, and must not be used elsewhere; without it, the body is one message. */
export async function* coalesceChunks(
  chunks: AsyncIterable<Uint8Array>,
  envelopes: Envelopes | undefined,
): AsyncGenerator<Uint8Array, void> {
  let pending: Uint8Array = noBytes
  let length = 0
  /** Bytes of the current message that were passed on. */
  let before = 0
  for await (const chunk of chunks) {
    envelopes?.add(chunk)
    const isWhole = envelopes?.incomplete === 0
    const enough = before < prefixLength ? 1 : Math.max(minBytes, before)
    let joined = chunk
    if (length > 0 || !(isWhole || chunk.length >= enough)) {
      pending = withRoom(pending, length, length + chunk.length)
      pending.set(chunk, length)
      length += chunk.length
      if (!isWhole && length < enough) continue
      joined = pending.subarray(0, length)
    }
    yield joined
    before = envelopes?.incomplete ?? before + joined.length
    pending = noBytes
    length = 0
  }
  if (length > 0) yield pending.subarray(0, length)
}

const noBytes = new Uint8Array(0)

/** Grows by doubling. */
const withRoom = (bytes: Uint8Array, used: number, needed: number): Uint8Array => {
  if (needed <= bytes.length) return bytes
  const grown = new Uint8Array(Math.max(needed, 2 * bytes.length))
  grown.set(bytes.subarray(0, used))
  return grown
}
