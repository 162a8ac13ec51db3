/**
 * Measures the ink at each pixel of a photographed paper, independent of the lighting. A stroke is darker than the
 * paper on both of its sides; a shadow is not.
 */
import type { Pixels } from "@nereid/image"

export interface Ink {
  /** 0 is paper, 1 would be perfect black, by rows. */
  readonly amounts: Float32Array
  readonly width: number
  readonly height: number
}

/** Maximum width of a dark stroke, as a share of the picture's longer side. Anything wider is shadow. */
const widestStroke = 0.2

/**
 * Measures ink relative to the paper. The paper's brightness is the morphological closing of the picture: the darkest
 * of the brightest greys within reach. The closing removes strokes and keeps the edges of shadows.
 */
export const of = ({ data, width, height }: Omit<Pixels.Pixels, "channels">): Ink => {
  const reach = Math.ceil((widestStroke * Math.max(width, height)) / 2)
  const brightest = brightestAround(data, width, height, reach)
  const paper = inverted(brightestAround(inverted(brightest), width, height, reach))
  const amounts = new Float32Array(data.length)
  for (let index = 0; index < data.length; index++) {
    amounts[index] = 1 - (data[index] ?? 0) / Math.max(1, paper[index] ?? 0)
  }
  return { amounts, width, height }
}

const inverted = (data: Uint8Array): Uint8Array => data.map((grey) => 255 - grey)

/**
 * Returns the maximum of the square around each pixel, up to `reach` in each direction: first by rows, then by columns.
 */
const brightestAround = (data: Uint8Array, width: number, height: number, reach: number): Uint8Array => {
  const result = new Uint8Array(data)
  for (let row = 0; row < height; row++) slide(result, row * width, 1, width, reach)
  for (let column = 0; column < width; column++) slide(result, column, width, height, reach)
  return result
}

/**
 * The same on one line of `count` pixels that are `step` apart, in place, at the same price for any reach (van Herk
 * 1992): the line is cut into blocks as long as the window, so that each window is the end of one block and the
 * beginning of the next, whose brightest pixels are known from both sides.
 */
const slide = (data: Uint8Array, start: number, step: number, count: number, reach: number): void => {
  const window = 2 * reach + 1
  const ahead = new Uint8Array(Math.ceil((count + 2 * reach) / window) * window) // the line between two black margins
  for (let index = 0; index < count; index++) ahead[index + reach] = data[start + index * step] ?? 0
  const behind = ahead.slice()
  for (let block = 0; block < ahead.length; block += window) {
    for (let index = block + 1; index < block + window; index++) {
      ahead[index] = Math.max(ahead[index] ?? 0, ahead[index - 1] ?? 0)
    }
    for (let index = block + window - 2; index >= block; index--) {
      behind[index] = Math.max(behind[index] ?? 0, behind[index + 1] ?? 0)
    }
  }
  for (let index = 0; index < count; index++) {
    data[start + index * step] = Math.max(behind[index] ?? 0, ahead[index + 2 * reach] ?? 0)
  }
}
