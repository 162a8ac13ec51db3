/**
 * How much ink is where on a photographed paper, whatever light falls on it: strokes are darker than the paper on both their
 * sides, a shadow has paper under it as far as it goes. No idea of what is written there.
 */
import type { Pixels } from "./Picture.ts"

export interface Ink {
  /** 0 is paper, 1 would be perfect black, by rows. */
  readonly amounts: Float32Array
  readonly width: number
  readonly height: number
}

/** What is dark and thinner than this share of the picture's longer side is a stroke; what is wider is shadow. */
const widestStroke = 0.2

/**
 * The paper's brightness everywhere is the picture's morphological closing: the brightest grey within reach, and of those
 * the darkest within reach. Strokes vanish in it, edges of shadows stay where they are.
 */
export const of = ({ data, width, height }: Pixels): Ink => {
  const reach = Math.ceil((widestStroke * Math.max(width, height)) / 2)
  const brightest = alongColumns(alongRows(data, width, reach, Math.max), width, reach, Math.max)
  const paper = alongColumns(alongRows(brightest, width, reach, Math.min), width, reach, Math.min)
  const amounts = Float32Array.from(paper, (light, index) => 1 - (data[index] ?? 0) / Math.max(1, light))
  return { amounts, width, height }
}

type Pick = (one: number, other: number) => number

const alongRows = (data: Uint8Array, width: number, reach: number, pick: Pick): Uint8Array => {
  const picked = new Uint8Array(data.length)
  for (let start = 0; start < data.length; start += width) slide(data, picked, start, 1, width, reach, pick)
  return picked
}

const alongColumns = (data: Uint8Array, width: number, reach: number, pick: Pick): Uint8Array => {
  const picked = new Uint8Array(data.length)
  for (let start = 0; start < width; start++) slide(data, picked, start, width, data.length / width, reach, pick)
  return picked
}

/**
 * The extreme of each pixel's neighbours up to `reach` away on one line of `count` pixels that are `step` apart, at the same
 * price for any reach (van Herk 1992): the line is cut into blocks as long as the window, so that each window is the end
 * of one block and the beginning of the next, whose extremes have been run up from both sides.
 */
const slide = (
  from: Uint8Array,
  to: Uint8Array,
  start: number,
  step: number,
  count: number,
  reach: number,
  pick: Pick,
): void => {
  const window = 2 * reach + 1
  const ahead = new Uint8Array(count)
  const behind = new Uint8Array(count)
  for (let index = 0; index < count; index++) {
    const value = from[start + index * step] ?? 0
    ahead[index] = index % window === 0 ? value : pick(value, ahead[index - 1] ?? value)
  }
  for (let index = count - 1; index >= 0; index--) {
    const value = from[start + index * step] ?? 0
    behind[index] = index % window === window - 1 ? value : pick(value, behind[index + 1] ?? value)
  }
  for (let index = 0; index < count; index++) {
    const first = Math.max(0, index - reach)
    const last = Math.min(count - 1, index + reach)
    const left = behind[first] ?? 0
    const right = ahead[last] ?? 0
    // Cut off by an end of the line, a window may lie in one block: at its beginning or at its end.
    const inOne = Math.floor(first / window) === Math.floor(last / window)
    to[start + index * step] = !inOne ? pick(left, right) : first % window === 0 ? right : left
  }
}
