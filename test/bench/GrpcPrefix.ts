/**
 * What stands before a message of gRPC. Alone in its file, so that the bare server has it without what makes messages: how
 * often V8 collects its buffers depends on how large its heap is otherwise.
 */

/** Bytes of what stands before a message of gRPC. */
export const prefixLength = 5

/** Behind its prefix: not compressed, and so long. */
export const framed = (message: Uint8Array): Buffer => {
  const prefix = Buffer.alloc(prefixLength)
  prefix.writeUInt32BE(message.length, 1)
  return Buffer.concat([prefix, message])
}
