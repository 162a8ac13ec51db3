/**
 * The Huffman code of header texts (RFC 7541, 5.2 and appendix B). The code is canonical: codes of one length are
 * consecutive numbers in the order of their symbols, so the lengths determine all codes.
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

const maxCodeLength = 30

const codes = new Uint32Array(lengths.length)

/**
 * A machine that reads four bits at a time. Its states are the inner nodes of the tree of codes. The entry of a state
 * and four bits is: the next state, the symbol that was completed, and whether a text may end there.
 */
const bitsPerStep = 4
const stateShift = 10
const endFlag = 0x200
const symbolFlag = 0x100
const invalid = -1

const makeSteps = (): Int32Array => {
  // Children of the inner nodes; a leaf is -2 - symbol, and 0 is a child that does not exist.
  const left = [0]
  const right = [0]
  let code = 0
  let length = 0
  for (const symbol of [...lengths.keys()].toSorted((a, b) => (lengths[a] ?? 0) - (lengths[b] ?? 0) || a - b)) {
    code = (code + (length === 0 ? 0 : 1)) << ((lengths[symbol] ?? 0) - length)
    length = lengths[symbol] ?? 0
    codes[symbol] = code
    let node = 0
    for (let bit = length - 1; bit >= 0; bit--) {
      const children = (code >>> bit) & 1 ? right : left
      if (bit === 0) children[node] = -2 - symbol
      else if (children[node] === 0) {
        left.push(0)
        right.push(0)
        node = children[node] = left.length - 1
      } else node = children[node] ?? 0
    }
  }
  // The code that ends a text is not in the tree. Its prefixes, at most 7 bits of ones, are the padding.
  const paddings = new Set<number>([0])
  for (let node = 0, bits = 0; bits < 7; bits++) paddings.add((node = right[node] ?? 0))
  const steps = new Int32Array(left.length << bitsPerStep).fill(invalid)
  for (const start of left.keys()) {
    for (let bits = 0; bits < 1 << bitsPerStep; bits++) {
      let node = start
      let symbol: number | undefined
      let ok = true
      for (let bit = bitsPerStep - 1; bit >= 0 && ok; bit--) {
        const child = ((bits >>> bit) & 1 ? right : left)[node] ?? 0
        if (child === 0) ok = false
        else if (child < 0) {
          symbol = -2 - child
          node = 0
        } else node = child
      }
      if (!ok) continue
      const end = paddings.has(node) ? endFlag : 0
      steps[(start << bitsPerStep) | bits] =
        (node << stateShift) | end | (symbol === undefined ? 0 : symbolFlag | symbol)
    }
  }
  return steps
}

const steps = makeSteps()

/** Decodes bytes `start` to `end` as Latin-1; returns undefined if the code is invalid. */
export const decode = (bytes: Uint8Array, start = 0, end = bytes.length): string | undefined => {
  let text = ""
  let state = 0
  let entry = endFlag
  for (let position = start; position < end; position++) {
    const byte = bytes[position] ?? 0
    entry = steps[(state << bitsPerStep) | (byte >>> 4)] ?? invalid
    if (entry === invalid) return undefined
    if ((entry & symbolFlag) !== 0) text += String.fromCharCode(entry & 0xff)
    state = entry >>> stateShift
    entry = steps[(state << bitsPerStep) | (byte & 0xf)] ?? invalid
    if (entry === invalid) return undefined
    if ((entry & symbolFlag) !== 0) text += String.fromCharCode(entry & 0xff)
    state = entry >>> stateShift
  }
  return (entry & endFlag) === 0 ? undefined : text
}

/** The bytes of a text in Latin-1, encoded. */
export const encodedLength = (text: string): number => {
  let bits = 0
  for (let index = 0; index < text.length; index++) bits += lengths[text.charCodeAt(index) & 0xff] ?? maxCodeLength
  return (bits + 7) >>> 3
}

/** Writes a text in Latin-1 to `bytes`, which must have room for its encoded length. Returns the position behind it. */
export const encode = (text: string, bytes: Uint8Array, position: number): number => {
  let pending = 0
  let count = 0
  for (let index = 0; index < text.length; index++) {
    const symbol = text.charCodeAt(index) & 0xff
    const length = lengths[symbol] ?? 0
    const code = codes[symbol] ?? 0
    // At most 7 bits are pending, so 30 further ones would not fit into the 32 bits of an integer.
    for (let left = length; left > 0;) {
      const taken = Math.min(left, 24)
      left -= taken
      pending = (pending << taken) | ((code >>> left) & ((1 << taken) - 1))
      count += taken
      while (count >= 8) {
        count -= 8
        bytes[position++] = pending >>> count
        pending &= (1 << count) - 1
      }
    }
  }
  if (count > 0) bytes[position++] = (pending << (8 - count)) | ((1 << (8 - count)) - 1)
  return position
}
