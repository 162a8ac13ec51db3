/** The checksum CRC-32C (Castagnoli), which Node lacks: four bytes at a time, by tables. */

const polynomial = 0x82f63b78

/** Four tables of 256 entries. */
const tables = (() => {
  const all = new Int32Array(4 * 256)
  for (let byte = 0; byte < 256; byte++) {
    let sum = byte
    for (let bit = 0; bit < 8; bit++) sum = sum & 1 ? (sum >>> 1) ^ polynomial : sum >>> 1
    all[byte] = sum
  }
  for (let index = 256; index < all.length; index++) {
    const before = all[index - 256] ?? 0
    all[index] = (before >>> 8) ^ (all[before & 0xff] ?? 0)
  }
  return all
})()

export class Crc32c {
  #sum = -1

  update(bytes: Uint8Array): void {
    let sum = this.#sum
    let index = 0
    for (const end = bytes.length - 3; index < end; index += 4) {
      sum ^= bytes[index]! | (bytes[index + 1]! << 8) | (bytes[index + 2]! << 16) | (bytes[index + 3]! << 24)
      sum =
        tables[768 + (sum & 0xff)]! ^
        tables[512 + ((sum >>> 8) & 0xff)]! ^
        tables[256 + ((sum >>> 16) & 0xff)]! ^
        tables[sum >>> 24]!
    }
    for (; index < bytes.length; index++) sum = tables[(sum ^ bytes[index]!) & 0xff]! ^ (sum >>> 8)
    this.#sum = sum
  }

  hex(): string {
    return (~this.#sum >>> 0).toString(16).padStart(8, "0")
  }
}
