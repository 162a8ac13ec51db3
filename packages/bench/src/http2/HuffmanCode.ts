/**
 * The Huffman code of header texts (RFC 7541, 5.2 and appendix B), read. The code is canonical: codes of one length are
 * consecutive numbers in the order of their symbols, and so the lengths are all there is to know of it.
 */

/** Bits of the codes of the symbols 0 to 255. */
const lengths = [
  13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28,
  28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
  13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6,
  5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23,
  22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22,
  23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, 26, 26,
  20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27,
  27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27,
  27, 27, 27, 26,
]

const shortest = 5
const maxCodeLength = 30

const table = () => {
  let next = 0
  return Array.from({ length: maxCodeLength + 1 }, (_, length) => {
    const symbols = [...lengths.keys()].filter((symbol) => lengths[symbol] === length)
    const first = next << 1
    next = first + symbols.length
    return { symbols, first }
  })
}

/** Symbols in the order of their codes, and the first code, by code length. */
const byLength = table()

/** Decodes text in Latin-1; returns undefined if the code is invalid. */
export const decode = (bytes: Uint8Array): string | undefined => {
  const text: Array<number> = []
  let code = 0
  let length = 0
  for (const byte of bytes) {
    for (let bit = 7; bit >= 0; bit--) {
      code = (code << 1) | ((byte >> bit) & 1)
      length += 1
      if (length < shortest) continue
      if (length > maxCodeLength) return undefined
      const row = byLength[length]
      const symbol = row?.symbols[code - row.first]
      if (symbol === undefined) continue
      text.push(symbol)
      code = 0
      length = 0
    }
  }
  // The padding of the last byte is fewer than 8 one bits, a prefix of the longest code.
  if (length > 7 || code !== (1 << length) - 1) return undefined
  return String.fromCharCode(...text)
}
