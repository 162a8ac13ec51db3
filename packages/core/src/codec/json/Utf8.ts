/** Checks whether bytes are UTF-8. */

/**
 * The position of the first byte that is not UTF-8; undefined if all bytes from `from` to `to` are. As in the Unicode
 * standard, surrogates, overlong forms and points above U+10FFFF are invalid.
 */
export const invalidUtf8 = (bytes: Uint8Array, from: number, to: number): number | undefined => {
  if (to - from > manyBytes && isText(bytes.subarray(from, to))) return undefined
  let position = from
  while (position < to) {
    const lead = bytes[position] ?? 0
    if (lead < 0x80) {
      position += 1
      continue
    }
    const length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4
    if (lead < 0xc2 || lead > 0xf4 || position + length > to) return position
    const second = bytes[position + 1] ?? 0
    if (!isFurther(second) || (length > 2 && !isFurther(bytes[position + 2] ?? 0))) return position
    if (length > 3 && !isFurther(bytes[position + 3] ?? 0)) return position
    // Overlong forms, surrogates, and points that are too large.
    if ((lead === 0xe0 && second < 0xa0) || (lead === 0xed && second > 0x9f)) return position
    if ((lead === 0xf0 && second < 0x90) || (lead === 0xf4 && second > 0x8f)) return position
    position += length
  }
  return undefined
}

/** Bytes from which a decoder is faster than the loop, although it creates the text. */
const manyBytes = 256

const decoder = new TextDecoder("utf-8", { fatal: true })

const isText = (bytes: Uint8Array): boolean => {
  try {
    decoder.decode(bytes)
    return true
  } catch {
    return false
  }
}

const isFurther = (byte: number): boolean => (byte & 0xc0) === 0x80
