/**
 * The frame around a gRPC message (gRPC over HTTP/2, "Length-Prefixed-Message"): a flag, 1 if the message is
 * compressed, then its length in four bytes, then the message. ResponseMessageReader.ts joins the parts of a response,
 * and the server's RequestMessageReader.ts those of a request.
 */

/** Bytes before a message. */
export const prefixLength = 5

/** The flag of the prefix at `position`: 0 for a plain message, 1 for a compressed one; other values are invalid. */
export const compressedFlag = (bytes: Uint8Array, position: number): number => bytes[position] ?? 0

/** The length of the message whose prefix is at `position`, in bytes, without the prefix. */
export const messageLength = (bytes: Uint8Array, position: number): number =>
  (bytes[position + 1] ?? 0) * 2 ** 24 +
  (((bytes[position + 2] ?? 0) << 16) | ((bytes[position + 3] ?? 0) << 8) | (bytes[position + 4] ?? 0))

/** Writes the prefix of a plain message of `length` bytes. */
export const writePrefix = (bytes: Uint8Array, position: number, length: number): void => {
  bytes[position] = 0
  bytes[position + 1] = length >>> 24
  bytes[position + 2] = length >>> 16
  bytes[position + 3] = length >>> 8
  bytes[position + 4] = length
}

/** An uncompressed message with its prefix, in a buffer of the exact size. */
export const frame = (message: Uint8Array): Uint8Array<ArrayBuffer> => {
  const bytes = new Uint8Array(prefixLength + message.length)
  writePrefix(bytes, 0, message.length)
  bytes.set(message, prefixLength)
  return bytes
}

/**
 * Whether the chunk is the frame of one plain message of at most `limit` bytes and nothing else. Small messages arrive
 * that way, and need no reader.
 */
export const isWhole = (chunk: Uint8Array, limit: number): boolean => {
  const length = chunk.length - prefixLength
  return length >= 0 && chunk[0] === 0 && length <= limit && messageLength(chunk, 0) === length
}
