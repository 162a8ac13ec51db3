/**
 * Writes frames (FrameReader.ts) to a socket. A small frame is one buffer. A large one is the chunks of its body as
 * they are, which the kernel copies in one call: none is joined with another.
 */
import type { Writable } from "node:stream"
import { FrameBody } from "./FrameBody.ts"
import { headLength, inShared } from "./FrameReader.ts"
import type { SharedBodies } from "./SharedBodies.ts"

/** Bytes of a body up to which a frame is copied into one buffer: a call with many chunks costs more than that. */
const maxCopied = 16 * 1024

const noBody = new FrameBody()

/** `header` is JSON text. A large body goes to `shared`, if there is room. Does nothing on a socket that has ended. */
export const write = (
  socket: Writable,
  kind: number,
  header: string,
  body: FrameBody = noBody,
  shared?: SharedBodies,
): void => {
  if (!socket.writable) return
  const { chunks, length } = body
  const offset = shared?.write(body)
  const word = shared === undefined ? kind : (kind | (shared.released << 8)) >>> 0
  if (offset !== undefined) {
    socket.write(joined((word | inShared) >>> 0, header, undefined, length, offset))
    return
  }
  if (length <= maxCopied) {
    socket.write(joined(word, header, body))
    return
  }
  socket.cork()
  socket.write(joined(word, header, undefined, length))
  for (const chunk of chunks) socket.write(chunk)
  socket.uncork()
}

/**
 * The head, the header and a body; without a body, they announce one of `length` bytes. `upper`: the upper half of the
 * length.
 */
const joined = (
  kind: number,
  header: string,
  body: FrameBody | undefined,
  length = body?.length ?? 0,
  upper = Math.floor(length / 2 ** 32),
): Buffer => {
  const headerLength = Buffer.byteLength(header)
  const bodyAt = headLength + headerLength
  const buffer = Buffer.allocUnsafe(bodyAt + (body?.length ?? 0))
  buffer.writeUInt32LE(headerLength, 0)
  buffer.writeUInt32LE(kind, 4)
  buffer.writeUInt32LE(length % 2 ** 32, 8)
  buffer.writeUInt32LE(upper, 12)
  buffer.write(header, headLength)
  let offset = bodyAt
  for (const chunk of body?.chunks ?? []) {
    buffer.set(chunk, offset)
    offset += chunk.length
  }
  return buffer
}
