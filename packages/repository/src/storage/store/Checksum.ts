/** Digests of objects, as the stores give them, and the digest of a file to compare with. */
import { createHash } from "node:crypto"
import { open } from "node:fs/promises"
import { crc32 } from "node:zlib"
import { Crc32c } from "./Crc32c.ts"

/** `git`: SHA-1 of a file as git stores it, behind its length. */
export type ChecksumAlgorithm = "md5" | "sha1" | "sha256" | "crc32" | "crc32c" | "git"

export interface Checksum {
  readonly algorithm: ChecksumAlgorithm
  /** In hexadecimal digits, lower case. */
  readonly value: string
}

/** A digest that a store gives in base64; undefined without one. */
export const ofBase64 = (algorithm: ChecksumAlgorithm, text: string | undefined): Checksum | undefined => {
  if (text === undefined || text === "") return undefined
  return { algorithm, value: Buffer.from(text, "base64").toString("hex") }
}

interface Digest {
  readonly update: (bytes: Uint8Array) => unknown
  readonly hex: () => string
}

/** Bytes between two turns of the event loop: about half a millisecond of the slowest digest. */
const pieceBytes = 256 * 1024

/** Digest of a file, without occupying the thread for long. */
export const ofFile = async (path: string, algorithm: ChecksumAlgorithm, signal: AbortSignal): Promise<string> => {
  const file = await open(path)
  try {
    const { size } = await file.stat()
    const digest = digestOf(algorithm, size)
    const piece = new Uint8Array(pieceBytes)
    for (;;) {
      signal.throwIfAborted()
      const { bytesRead } = await file.read(piece, 0, piece.length)
      if (bytesRead === 0) return digest.hex()
      digest.update(piece.subarray(0, bytesRead))
    }
  } finally {
    await file.close()
  }
}

const digestOf = (algorithm: ChecksumAlgorithm, size: number): Digest => {
  if (algorithm === "crc32c") return new Crc32c()
  if (algorithm === "crc32") {
    let sum = 0
    return { update: (bytes) => (sum = crc32(bytes, sum)), hex: () => sum.toString(16).padStart(8, "0") }
  }
  const hash = createHash(algorithm === "git" ? "sha1" : algorithm)
  if (algorithm === "git") hash.update(`blob ${size}\0`)
  return { update: (bytes) => hash.update(bytes), hex: () => hash.digest("hex") }
}
