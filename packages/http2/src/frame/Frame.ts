/** The frames of HTTP/2 (RFC 9113, 4 and 6): their names and numbers, and how they are written. */
export const Type = {
  DATA: 0,
  HEADERS: 1,
  PRIORITY: 2,
  RST_STREAM: 3,
  SETTINGS: 4,
  PUSH_PROMISE: 5,
  PING: 6,
  GOAWAY: 7,
  WINDOW_UPDATE: 8,
  CONTINUATION: 9,
} as const

export const Flag = { ACK: 0x1, END_STREAM: 0x1, END_HEADERS: 0x4, PADDED: 0x8, PRIORITY: 0x20 } as const

export const Setting = {
  HEADER_TABLE_SIZE: 1,
  ENABLE_PUSH: 2,
  MAX_CONCURRENT_STREAMS: 3,
  INITIAL_WINDOW_SIZE: 4,
  MAX_FRAME_SIZE: 5,
  MAX_HEADER_LIST_SIZE: 6,
} as const

/** Bytes before every payload. */
export const headLength = 9

/** The largest window, and the largest increment of one. */
export const maxWindow = 2 ** 31 - 1

/** Before the settings of a peer have arrived, and the largest frame that this implementation accepts. */
export const defaults = { window: 65_535, frameSize: 16_384 } as const

export const maxFrameSize = 2 ** 24 - 1

/** The first bytes of a client. */
export const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1")

export const writeHead = (
  bytes: Uint8Array,
  offset: number,
  length: number,
  type: number,
  flags: number,
  stream: number,
): void => {
  bytes[offset] = length >>> 16
  bytes[offset + 1] = length >>> 8
  bytes[offset + 2] = length
  bytes[offset + 3] = type
  bytes[offset + 4] = flags
  writeUint32(bytes, offset + 5, stream)
}

export const writeUint32 = (bytes: Uint8Array, offset: number, value: number): void => {
  bytes[offset] = value >>> 24
  bytes[offset + 1] = value >>> 16
  bytes[offset + 2] = value >>> 8
  bytes[offset + 3] = value
}

export const readUint32 = (bytes: Uint8Array, offset: number): number =>
  (((bytes[offset] ?? 0) << 24) |
    ((bytes[offset + 1] ?? 0) << 16) |
    ((bytes[offset + 2] ?? 0) << 8) |
    (bytes[offset + 3] ?? 0)) >>>
  0

/** Reads a number whose first bit is reserved: a stream id or an increment. */
export const readUint31 = (bytes: Uint8Array, offset: number): number => readUint32(bytes, offset) & 0x7fff_ffff

export const encode = (type: number, flags: number, stream: number, payload: Uint8Array): Buffer => {
  const frame = Buffer.allocUnsafe(headLength + payload.length)
  writeHead(frame, 0, payload.length, type, flags, stream)
  frame.set(payload, headLength)
  return frame
}

const number = (type: number, stream: number, value: number): Buffer => {
  const payload = Buffer.alloc(4)
  writeUint32(payload, 0, value)
  return encode(type, 0, stream, payload)
}

export const settings = (values: ReadonlyArray<readonly [setting: number, value: number]>): Buffer => {
  const payload = Buffer.alloc(6 * values.length)
  for (const [index, [setting, value]] of values.entries()) {
    payload.writeUInt16BE(setting, 6 * index)
    payload.writeUInt32BE(value, 6 * index + 2)
  }
  return encode(Type.SETTINGS, 0, 0, payload)
}

export const windowUpdate = (stream: number, increment: number): Buffer => number(Type.WINDOW_UPDATE, stream, increment)

export const reset = (stream: number, code: number): Buffer => number(Type.RST_STREAM, stream, code)

export const goaway = (lastStream: number, code: number, reason: string): Buffer => {
  const text = Buffer.from(reason)
  const payload = Buffer.alloc(8 + text.length)
  writeUint32(payload, 0, lastStream)
  writeUint32(payload, 4, code)
  payload.set(text, 8)
  return encode(Type.GOAWAY, 0, 0, payload)
}
