/** Colours for numbers: dark blue to yellow, which all eyes tell apart, and printers as well. */

/** Stops of the colour map viridis, at even distances. */
const stops: ReadonlyArray<readonly [number, number, number]> = [
  [68, 1, 84],
  [59, 82, 139],
  [33, 145, 140],
  [94, 201, 98],
  [253, 231, 37],
]

export interface Sampled {
  readonly width: number
  readonly height: number
  readonly data: Uint8ClampedArray<ArrayBuffer>
}

/** Most rows and columns that are shown; of larger matrices, every so many. */
const maxSide = 512

/** The pixels of a matrix, one for each number. What is not finite is grey. */
export const pixelsOf = (
  numbers: ArrayLike<number>,
  rows: number,
  columns: number,
  [least, most]: readonly [number, number],
): Sampled => {
  const width = Math.min(columns, maxSide)
  const height = Math.min(rows, maxSide)
  const data = new Uint8ClampedArray(4 * width * height)
  for (let y = 0; y < height; y++) {
    const row = Math.floor((y * rows) / height)
    for (let x = 0; x < width; x++) {
      const value = numbers[row * columns + Math.floor((x * columns) / width)] ?? NaN
      data.set(colourOf(most > least ? (value - least) / (most - least) : 0.5), 4 * (y * width + x))
    }
  }
  return { width, height, data }
}

const colourOf = (share: number): readonly [number, number, number, number] => {
  if (!Number.isFinite(share)) return [128, 128, 128, 255]
  const position = Math.max(0, Math.min(1, share)) * (stops.length - 1)
  const index = Math.min(stops.length - 2, Math.floor(position))
  const [from = [0, 0, 0], to = [0, 0, 0]] = [stops[index], stops[index + 1]]
  const mix = (channel: 0 | 1 | 2) => from[channel] + (to[channel] - from[channel]) * (position - index)
  return [mix(0), mix(1), mix(2), 255]
}
