/**
 * Reads the beginning of a ModelStreamInferResponse in place: its error, its request id, and whether it is the final
 * response. The tensors after it are not decoded.
 */
export interface StreamReply {
  /** Error message; empty for a successful reply. */
  readonly error: string
  readonly id: string
  /** Whether this is the final reply to its request; undefined if the reply does not say. */
  readonly final: boolean | undefined
}

const finalParameter = "triton_final_response"

/** Reads the message in `bytes` from `start` to `end`. Returns undefined if it is malformed. */
export const read = (bytes: Buffer, start: number, end: number): StreamReply | undefined => {
  let error = ""
  let id = ""
  let final: boolean | undefined
  const whole = walk(bytes, start, end, (field, from, to) => {
    if (field === 1) error = bytes.toString("utf8", from, to)
    if (field !== 2) return true
    walk(bytes, from, to, (inner, at, until) => {
      if (inner === 3) id = bytes.toString("latin1", at, until)
      if (inner === 4) final = readFinal(bytes, at, until) ?? final
      // Stops at the outputs: servers write fields in the order of their numbers, and later fields are not needed.
      return inner < 5
    })
    return true
  })
  return whole ? { error, id, final } : undefined
}

/** Reads the final flag from a map entry of the parameters: a name and a boolean. */
const readFinal = (bytes: Buffer, start: number, end: number): boolean | undefined => {
  let name = ""
  let value: boolean | undefined
  walk(bytes, start, end, (field, from, to) => {
    if (field === 1) name = bytes.toString("latin1", from, to)
    if (field === 2) {
      value = false
      walk(bytes, from, to, (inner, at) => {
        if (inner === 1) value = bytes[at] === 1
        return true
      })
    }
    return true
  })
  return name === finalParameter ? value : undefined
}

/**
 * Visits fields until one says false; whether they could be read. A field may end beyond what is there of the message.
 */
const walk = (
  bytes: Buffer,
  start: number,
  end: number,
  visit: (field: number, start: number, end: number) => boolean,
): boolean => {
  const cursor = { bytes, offset: start }
  while (cursor.offset < Math.min(end, bytes.length)) {
    const tag = varint(cursor)
    let from = cursor.offset
    switch (tag & 7) {
      case 0:
        varint(cursor)
        break
      case 1:
        cursor.offset += 8
        break
      case 2: {
        const length = varint(cursor)
        from = cursor.offset
        cursor.offset += length
        break
      }
      case 5:
        cursor.offset += 4
        break
      default:
        return false
    }
    if (!visit(tag >>> 3, from, cursor.offset)) return true
  }
  return true
}

const varint = (cursor: { readonly bytes: Buffer; offset: number }): number => {
  let value = 0
  for (let factor = 1; factor <= 2 ** 63; factor *= 0x80) {
    const byte = cursor.bytes[cursor.offset++] ?? 0
    value += (byte & 0x7f) * factor
    if (byte < 0x80) break
  }
  return value
}
