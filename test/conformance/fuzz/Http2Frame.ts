/**
 * The frames of HTTP/2 (RFC 9113) that a conversation is made of before it is changed, as bytes. No more of the
 * protocol than that: header blocks are literals without Huffman code or table (RFC 7541, 6.2.2), and nothing is read
 * here.
 */
export const Type = { DATA: 0, HEADERS: 1, RST_STREAM: 3, SETTINGS: 4, PING: 6, GOAWAY: 7, WINDOW_UPDATE: 8 } as const
export const Flag = { ACK: 1, END_STREAM: 1, END_HEADERS: 4 } as const

const headLength = 9

export const encode = (type: number, flags: number, stream: number, payload: Uint8Array): Buffer => {
  const frame = Buffer.allocUnsafe(headLength + payload.length)
  frame.writeUIntBE(payload.length, 0, 3)
  frame[3] = type
  frame[4] = flags
  frame.writeUInt32BE(stream, 5)
  frame.set(payload, headLength)
  return frame
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

const windowUpdate = (increment: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(increment)
  return encode(Type.WINDOW_UPDATE, 0, 0, bytes)
}

/**
 * The client's first bytes. Without a header table (setting 1), equal header blocks have equal bytes. Pushes are
 * disabled (2), and the windows are large enough for the whole connection.
 */
export const preface = Buffer.concat([
  Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
  encode(Type.SETTINGS, 0, 0, Buffer.concat([setting(1, 0), setting(2, 0), setting(4, 2 ** 31 - 1)])),
  windowUpdate(2 ** 31 - 1 - 65_535),
])
