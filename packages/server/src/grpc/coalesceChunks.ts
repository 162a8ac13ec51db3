/**
 * The body of a call for Connect, whose reader looks at all pieces of a message again with each that comes: what a caller
 * sends in single bytes would keep it busy for minutes. Here pieces grow with their message, so that there are few of any;
 * a message that is whole waits for nothing.
 */
import type { Envelopes } from "./Envelopes.ts"

/** Bytes of the smallest piece of a message behind its length, which is handed on at once: it may be refused for it. */
const least = 64 * 1024

const prefixLength = 5

/** `envelopes`, which is theirs, follows the messages; without, the body is one. */
export async function* pieces(
  chunks: AsyncIterable<Uint8Array>,
  envelopes: Envelopes | undefined,
): AsyncGenerator<Uint8Array, void> {
  let kept: Uint8Array = noBytes
  let length = 0
  /** Of the message under way, as it was handed on. */
  let before = 0
  for await (const chunk of chunks) {
    envelopes?.add(chunk)
    const isWhole = envelopes?.incomplete === 0
    const enough = before < prefixLength ? 1 : Math.max(least, before)
    let piece = chunk
    if (length > 0 || !(isWhole || chunk.length >= enough)) {
      kept = withRoom(kept, length, length + chunk.length)
      kept.set(chunk, length)
      length += chunk.length
      if (!isWhole && length < enough) continue
      piece = kept.subarray(0, length)
    }
    yield piece
    before = envelopes?.incomplete ?? before + piece.length
    kept = noBytes
    length = 0
  }
  if (length > 0) yield kept.subarray(0, length)
}

const noBytes = new Uint8Array(0)

/** Grown by doubling. */
const withRoom = (bytes: Uint8Array, used: number, needed: number): Uint8Array => {
  if (needed <= bytes.length) return bytes
  const grown = new Uint8Array(Math.max(needed, 2 * bytes.length))
  grown.set(bytes.subarray(0, used))
  return grown
}
