import { expect, it } from "vitest"
import { centred, type Grey, resized, toRgba } from "./Drawing.ts"

/** A drawing whose ink is one box. */
const box = (side: number, left: number, top: number, width: number, height: number): Grey => ({
  width: side,
  height: side,
  data: Float64Array.from({ length: side * side }, (_, pixel) => {
    const [x, y] = [pixel % side, Math.floor(pixel / side)]
    return x >= left && x < left + width && y >= top && y < top + height ? 255 : 0
  }),
})

const inked = ({ width, height, data }: Grey) => {
  const pixels = Array.from({ length: width * height }, (_, pixel) => pixel).filter((pixel) => (data[pixel] ?? 0) > 128)
  const [xs, ys] = [pixels.map((pixel) => pixel % width), pixels.map((pixel) => Math.floor(pixel / width))]
  return [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)]
}

it("a smaller picture has the averages", () => {
  expect(Array.from(resized(box(4, 0, 0, 1, 2), 2, 2).data)).toEqual([127.5, 0, 0, 0])
})

it("a digit in a corner is centred, 20 pixels high", () => {
  const digit = centred(box(280, 10, 5, 20, 100), 28, 28)
  expect(inked(digit)).toEqual([12, 4, 15, 23])
})

it("the centre of mass is in the middle, not the box", () => {
  const { width, height, data } = box(280, 0, 0, 140, 40)
  const mass = Float64Array.from(data)
  // A thin line to the right makes the box wider.
  for (let x = 140; x < 280; x++) mass[x] = 255
  const digit = centred({ width, height, data: mass }, 28, 28)
  expect(inked(digit)[0]).toBeGreaterThan(6)
})

it("an empty drawing stays empty", () => {
  expect(Math.max(...Array.from(centred(box(28, 0, 0, 0, 0), 28, 28).data))).toBe(0)
  expect([...toRgba({ width: 1, height: 1, data: [7] })]).toEqual([7, 7, 7, 255])
})
