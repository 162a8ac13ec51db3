/**
 * Crops the single figure on a paper and places it as MNIST does: 20 pixels in its longer direction, with its centre of
 * mass in the middle of 28x28.
 */
import type { Ink } from "./Ink.ts"

export const side = 28
const longest = 20

/** Minimum difference in ink between the two groups; less is grain, or the rest of a shadow. */
const minInk = 0.15

/** Blots this much smaller than the largest one are dirt. */
const minShare = 0.08

/** A part of a picture; `right` and `bottom` are exclusive. */
interface Box {
  readonly left: number
  readonly top: number
  readonly right: number
  readonly bottom: number
}

/** 0 is paper and 1 is ink, 28x28; undefined on a blank paper. */
export const find = ({ amounts, width, height }: Ink): Float32Array | undefined => {
  const { paper, ink } = otsu(amounts)
  if (ink - paper < minInk) return undefined
  const found = blots(amounts, width, height, (paper + ink) / 2)
  const largest = Math.max(0, ...found.map(({ pixels }) => pixels.length))
  const kept = found.filter(({ pixels }) => pixels.length >= minShare * largest)
  if (largest < longest) return undefined

  // Edges stay soft, as MNIST's are; ink of full strength is what the pen's own pixels have on average.
  const pixels = kept.flatMap((blot) => blot.pixels)
  const strength = pixels.reduce((sum, pixel) => sum + (amounts[pixel] ?? 0), 0) / pixels.length
  const figure = new Float32Array(amounts.length)
  for (const pixel of pixels) {
    for (const near of [pixel, pixel - 1, pixel + 1, pixel - width, pixel + width]) {
      figure[near] = Math.min(1, (amounts[near] ?? 0) / strength)
    }
  }
  return place(figure, width, {
    left: Math.min(...kept.map(({ box }) => box.left)),
    top: Math.min(...kept.map(({ box }) => box.top)),
    right: Math.max(...kept.map(({ box }) => box.right)),
    bottom: Math.max(...kept.map(({ box }) => box.bottom)),
  })
}

interface Groups {
  /** Average ink of each group. */
  readonly paper: number
  readonly ink: number
}

/** The two groups of amounts that differ most, given how large they are (Otsu 1979). */
const otsu = (amounts: Float32Array): Groups => {
  const counts = new Float64Array(256)
  for (const amount of amounts) counts[Math.min(255, Math.floor(amount * 256))]! += 1
  const total = counts.reduce((sum, count, bin) => sum + count * bin, 0)
  let groups: Groups = { paper: 0, ink: 0 }
  let [below, sumBelow, best] = [0, 0, 0]
  for (const [bin, count] of counts.entries()) {
    below += count
    sumBelow += count * bin
    const above = amounts.length - below
    if (below === 0 || above === 0) continue
    const [paper, ink] = [sumBelow / below / 256, (total - sumBelow) / above / 256]
    const apart = below * above * (ink - paper) ** 2
    if (apart > best) [best, groups] = [apart, { paper, ink }]
  }
  return groups
}

interface Blot {
  readonly pixels: ReadonlyArray<number>
  readonly box: Box
}

/** Pixels above the threshold that touch, also at their corners. */
const blots = (amounts: Float32Array, width: number, height: number, threshold: number): ReadonlyArray<Blot> => {
  const seen = new Uint8Array(amounts.length)
  const found: Array<Blot> = []
  for (let start = 0; start < amounts.length; start++) {
    if (seen[start] === 1 || (amounts[start] ?? 0) < threshold) continue
    seen[start] = 1
    const pixels = [start]
    let box: Box = { left: width, top: height, right: 0, bottom: 0 }
    for (let next = 0; next < pixels.length; next++) {
      const pixel = pixels[next] ?? start
      const [x, y] = [pixel % width, Math.floor(pixel / width)]
      box = {
        left: Math.min(box.left, x),
        top: Math.min(box.top, y),
        right: Math.max(box.right, x + 1),
        bottom: Math.max(box.bottom, y + 1),
      }
      for (let row = Math.max(0, y - 1); row < Math.min(height, y + 2); row++) {
        for (let column = Math.max(0, x - 1); column < Math.min(width, x + 2); column++) {
          const near = row * width + column
          if (seen[near] === 1 || (amounts[near] ?? 0) < threshold) continue
          seen[near] = 1
          pixels.push(near)
        }
      }
    }
    found.push({ pixels, box })
  }
  return found
}

/** Points per pixel and direction at which the figure is looked up, so that thin strokes are not missed. */
const points = 4

const place = (figure: Float32Array, width: number, { left, top, right, bottom }: Box): Float32Array => {
  let [sum, sumX, sumY] = [0, 0, 0]
  for (let y = top; y < bottom; y++) {
    for (let x = left; x < right; x++) {
      const ink = figure[y * width + x] ?? 0
      sum += ink
      sumX += ink * (x + 0.5)
      sumY += ink * (y + 0.5)
    }
  }
  const scale = Math.max(right - left, bottom - top) / longest
  const at = (x: number, y: number): number => {
    const [column, row] = [Math.floor(x), Math.floor(y)]
    return column < left || column >= right || row < top || row >= bottom ? 0 : (figure[row * width + column] ?? 0)
  }
  const placed = new Float32Array(side * side)
  for (let pixel = 0; pixel < placed.length; pixel++) {
    let ink = 0
    for (let point = 0; point < points * points; point++) {
      const x = (pixel % side) + ((point % points) + 0.5) / points - side / 2
      const y = Math.floor(pixel / side) + (Math.floor(point / points) + 0.5) / points - side / 2
      ink += at(sumX / sum + x * scale, sumY / sum + y * scale)
    }
    placed[pixel] = ink / (points * points)
  }
  return placed
}
