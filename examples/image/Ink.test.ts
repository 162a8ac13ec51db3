import { expect, it } from "vitest"
import * as Ink from "./Ink.ts"

/** A page of 40x30 under this light, with a stroke of black ink, 4 wide, from top to bottom. */
const page = (light: (x: number, y: number) => number, stroke: number | undefined) => {
  const [width, height] = [40, 30]
  const data = new Uint8Array(width * height).map((_, index) => {
    const [x, y] = [index % width, Math.floor(index / width)]
    return light(x, y) * (stroke !== undefined && x >= stroke && x < stroke + 4 ? 0.25 : 1)
  })
  return { data, width, height }
}

const lights: ReadonlyArray<readonly [string, (x: number, y: number) => number]> = [
  ["even light", () => 240],
  ["dim light", () => 80],
  ["a shadow on one side", (x) => (x < 20 ? 240 : 120)],
  ["a shadow in a corner", (x, y) => (x > 25 && y > 15 ? 120 : 240)],
  ["a shadow across", (x, y) => (x + y > 35 ? 120 : 240)],
]

/** Pixels at the picture's border may be doubtful where a shadow's edge meets it askew. */
const maxUncertainty = 0.025 * 40 * 30

it.each(lights)("under %s, a stroke is ink and nothing else is", (_, light) => {
  for (const stroke of [0, 8, 30, 36]) {
    const { amounts, width } = Ink.of(page(light, stroke))
    const wrong = amounts.filter((amount, index) => {
      const inked = index % width >= stroke && index % width < stroke + 4
      return Math.abs(amount - (inked ? 0.75 : 0)) > 0.02
    })
    expect(wrong.length, String(stroke)).toBeLessThanOrEqual(maxUncertainty)
  }
})

it.each(lights)("under %s, a blank page has none", (_, light) => {
  const inked = Ink.of(page(light, undefined)).amounts.filter((amount) => amount > 0)
  expect(inked.length).toBeLessThanOrEqual(maxUncertainty)
})

it("a picture of one pixel, and a black one, have none", () => {
  expect([...Ink.of({ data: Uint8Array.of(9), width: 1, height: 1 }).amounts]).toEqual([0])
  expect(Math.max(...Ink.of({ data: new Uint8Array(12), width: 4, height: 3 }).amounts)).toBe(1)
})
