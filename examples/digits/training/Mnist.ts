/**
 * Reads the 10,000 test pictures of MNIST from the two gzipped IDX files that it is published as.
 * The format: "The IDX file format" on http://yann.lecun.com/exdb/mnist/
 */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { gunzipSync } from "node:zlib"

export interface Mnist {
  /** The picture's 28×28 bytes by rows, 255 = ink. */
  readonly pixels: (index: number) => Uint8Array
  /** Pixels as the network takes them: 0..1, 1 = ink. */
  readonly image: (index: number) => Float32Array
  readonly label: (index: number) => number
}

/** Width and height of every picture. */
export const side = 28

const count = 10_000

const imagesFile = "t10k-images-idx3-ubyte.gz"
const labelsFile = "t10k-labels-idx1-ubyte.gz"

/** The pictures that train: 0–8,999. */
export const trained = Uint32Array.from({ length: 9000 }, (_, index) => index)

/** The pictures that measure and never train: 9,000–9,999. */
export const heldOut = Array.from({ length: count - trained.length }, (_, row) => trained.length + row)

export const read = (folder: string): Mnist => {
  const images = readIdx(join(folder, imagesFile), [count, side, side])
  const labels = readIdx(join(folder, labelsFile), [count])
  const pixels = (index: number) => images.subarray(index * side * side, (index + 1) * side * side)
  return {
    pixels,
    image: (index) => Float32Array.from(pixels(index), (value) => value / 255),
    label: (index) => labels[index]!,
  }
}

const readIdx = (path: string, shape: ReadonlyArray<number>): Uint8Array => {
  const bytes = gunzipSync(readFileSync(path))
  const [zero, type, rank] = [bytes.readUInt16BE(0), bytes[2], bytes[3]]
  if (zero !== 0 || type !== 0x08 || rank !== shape.length) {
    const start = bytes.subarray(0, 4).toString("hex")
    throw new Error(`${path} starts with ${start}; an IDX file of bytes with ${shape.length} axes was expected`)
  }
  const header = 4 + 4 * rank
  const actual = shape.map((_, axis) => bytes.readUInt32BE(4 + 4 * axis))
  if (actual.join() !== shape.join()) {
    throw new Error(`${path} has the shape [${actual}]; [${shape}] was expected`)
  }
  const size = shape.reduce((product, length) => product * length, 1)
  if (bytes.length !== header + size) {
    throw new Error(`${path} holds ${bytes.length} bytes; ${header + size} were expected`)
  }
  return bytes.subarray(header)
}
