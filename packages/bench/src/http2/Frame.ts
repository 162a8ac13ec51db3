/**
 * The frames of HTTP/2 (RFC 9113, 4 and 6): their names, and how a client writes them. Read they are in FrameReader.ts.
 */
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
} as const

const names: ReadonlyArray<string> = [
  "NO_ERROR",
  "PROTOCOL_ERROR",
  "INTERNAL_ERROR",
  "FLOW_CONTROL_ERROR",
  "SETTINGS_TIMEOUT",
  "STREAM_CLOSED",
  "FRAME_SIZE_ERROR",
  "REFUSED_STREAM",
  "CANCEL",
  "COMPRESSION_ERROR",
  "CONNECT_ERROR",
  "ENHANCE_YOUR_CALM",
  "INADEQUATE_SECURITY",
  "HTTP_1_1_REQUIRED",
]

/** Returns the name of an error code, for messages. */
export const errorName = (code: number): string => names[code] ?? `error code ${code}`

export const noError = 0
export const refusedStream = 7
export const cancel = 8

/** Bytes before every payload. */
export const headLength = 9

/** The largest window there is, and so the largest sum of what opens one. */
export const maxWindow = 2 ** 31 - 1

/** Before a client has said anything else. */
export const defaults = { window: 65_535, frameSize: 16_384, headerTable: 4096 } as const

export const writeHead = (
  bytes: Buffer,
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
  bytes[offset + 5] = stream >>> 24
  bytes[offset + 6] = stream >>> 16
  bytes[offset + 7] = stream >>> 8
  bytes[offset + 8] = stream
}

export const encode = (type: number, flags: number, stream: number, payload: Uint8Array): Buffer => {
  const frame = Buffer.allocUnsafe(headLength + payload.length)
  writeHead(frame, 0, payload.length, type, flags, stream)
  frame.set(payload, headLength)
  return frame
}

export const settings = (values: ReadonlyArray<readonly [setting: number, value: number]>): Buffer => {
  const payload = Buffer.alloc(6 * values.length)
  for (const [index, [setting, value]] of values.entries()) {
    payload.writeUInt16BE(setting, 6 * index)
    payload.writeUInt32BE(value, 6 * index + 2)
  }
  return encode(Type.SETTINGS, 0, 0, payload)
}

const number = (type: number, stream: number, value: number): Buffer => {
  const payload = Buffer.alloc(4)
  payload.writeUInt32BE(value)
  return encode(type, 0, stream, payload)
}

export const windowUpdate = (stream: number, increment: number): Buffer => number(Type.WINDOW_UPDATE, stream, increment)

export const reset = (stream: number, code: number): Buffer => number(Type.RST_STREAM, stream, code)

export const goaway = (): Buffer => encode(Type.GOAWAY, 0, 0, Buffer.alloc(8))
