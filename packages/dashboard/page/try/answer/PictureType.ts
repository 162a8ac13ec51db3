/** Files of pictures that browsers show, by their first bytes. */

const signatures: ReadonlyArray<readonly [type: string, start: ReadonlyArray<number>]> = [
  ["image/png", [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]],
  ["image/jpeg", [0xff, 0xd8, 0xff]],
  ["image/gif", [0x47, 0x49, 0x46, 0x38]],
  ["image/bmp", [0x42, 0x4d]],
]

/** The media type; undefined for other bytes. SVG is text, and shown as such. */
export const pictureType = (bytes: Uint8Array): string | undefined => {
  const isWebp = ascii(bytes, 0, 4) === "RIFF" && ascii(bytes, 8, 12) === "WEBP"
  if (isWebp) return "image/webp"
  if (ascii(bytes, 4, 12) === "ftypavif") return "image/avif"
  if (bytes.length < 32) return undefined
  return signatures.find(([, start]) => start.every((byte, index) => bytes[index] === byte))?.[0]
}

const ascii = (bytes: Uint8Array, from: number, to: number): string => String.fromCharCode(...bytes.subarray(from, to))
