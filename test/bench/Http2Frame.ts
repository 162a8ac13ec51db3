/**
 * The frames of HTTP/2 (RFC 9113) that the load sends and reads, as bytes. No more of the protocol than that: header
 * blocks are literals without Huffman code or table (RFC 7541, 6.2.2), and replies are read as far as a check needs.
 */
import type { Request } from "./Request.ts"

export const Type = { DATA: 0, HEADERS: 1, RST_STREAM: 3, SETTINGS: 4, PING: 6, GOAWAY: 7, WINDOW_UPDATE: 8 } as const
export const Setting = { INITIAL_WINDOW_SIZE: 4, MAX_FRAME_SIZE: 5 } as const
export const Flag = { ACK: 1, END_STREAM: 1, END_HEADERS: 4 } as const

export interface Frame {
  readonly type: number
  readonly flags: number
  readonly stream: number
  readonly payload: Buffer
}

const headLength = 9

export const encode = (type: number, flags: number, stream: number, payload: Uint8Array): Buffer => {
  const frame = Buffer.allocUnsafe(headLength + payload.length)
  writeHead(frame, payload.length, type, flags, stream)
  frame.set(payload, headLength)
  return frame
}

export const writeHead = (frame: Buffer, length: number, type: number, flags: number, stream: number): void => {
  frame[0] = length >>> 16
  frame[1] = length >>> 8
  frame[2] = length
  frame[3] = type
  frame[4] = flags
  frame.writeUInt32BE(stream, 5)
}

/** Calls back for each whole frame and returns the bytes that are left: the beginning of the next one. */
export const decode = (bytes: Buffer, onFrame: (frame: Frame) => void): Buffer => {
  let offset = 0
  while (bytes.length - offset >= headLength) {
    const end = offset + headLength + bytes.readUIntBE(offset, 3)
    if (end > bytes.length) break
    onFrame({
      type: bytes[offset + 3] ?? 0,
      flags: bytes[offset + 4] ?? 0,
      stream: bytes.readUInt32BE(offset + 5),
      payload: bytes.subarray(offset + headLength, end),
    })
    offset = end
  }
  return bytes.subarray(offset)
}

/** The frame that opens a stream with a request, whatever stream that will be. */
export const requestHeaders = (port: number, { path, headers }: Request): Buffer => {
  const authority = `127.0.0.1:${port}`
  const block = headerBlock({
    ":method": "POST",
    ":scheme": "http",
    ":path": path,
    ":authority": authority,
    ...headers,
  })
  return encode(Type.HEADERS, Flag.END_HEADERS, 0, block)
}

/** Each name and value in full; they are shorter than 127 bytes, so that a length is one byte. */
export const headerBlock = (headers: Readonly<Record<string, string>>): Buffer =>
  Buffer.concat(Object.entries(headers).flatMap(([name, value]) => [Buffer.of(0), text(name), text(value)]))

const text = (value: string): Buffer => {
  if (value.length >= 127) throw new Error(`a header of ${value.length} characters, at most 126: ${value}`)
  return Buffer.concat([Buffer.of(value.length), Buffer.from(value)])
}

const setting = (id: number, value: number): Buffer => {
  const bytes = Buffer.alloc(6)
  bytes.writeUInt16BE(id)
  bytes.writeUInt32BE(value, 2)
  return bytes
}

/** Of the whole connection. */
export const windowUpdate = (increment: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(increment)
  return encode(Type.WINDOW_UPDATE, 0, 0, bytes)
}

/**
 * What a client says first. Without a header table (setting 1) equal header blocks have equal bytes; no pushes (2), and
 * windows so wide that they never need to be opened again.
 */
export const preface = Buffer.concat([
  Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
  encode(Type.SETTINGS, 0, 0, Buffer.concat([setting(1, 0), setting(2, 0), setting(4, 2 ** 31 - 1)])),
  windowUpdate(2 ** 31 - 1 - 65_535),
])
