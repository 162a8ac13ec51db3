import { expect, it } from "vitest"
import * as Figure from "./Figure.ts"

/** Ink in 100x80, where `inked` says so. */
const ink = (inked: (x: number, y: number) => boolean, amount = 0.7, paper = 0.05) => {
  const [width, height] = [100, 80]
  const at = (index: number) => (inked(index % width, Math.floor(index / width)) ? amount : paper)
  return { amounts: Float32Array.from({ length: width * height }, (_, index) => at(index)), width, height }
}

const bar = (x: number, y: number) => x >= 60 && x < 66 && y >= 10 && y < 50

/** Columns and rows with ink in them. */
const extent = (figure: Float32Array | undefined) => {
  const rows = new Set<number>()
  const columns = new Set<number>()
  for (const [pixel, value] of (figure ?? []).entries()) {
    if (value < 0.5) continue
    columns.add(pixel % Figure.side)
    rows.add(Math.floor(pixel / Figure.side))
  }
  return { columns: [...columns].toSorted((a, b) => a - b), rows: [...rows].toSorted((a, b) => a - b) }
}

const range = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => from + index)

it("is 20 pixels long, in the middle, wherever it was and however large", () => {
  for (const figure of [ink(bar), ink((x, y) => bar(x + 40, y - 25)), ink((x, y) => bar(2 * x - 40, 2 * y - 20))]) {
    const { columns, rows } = extent(Figure.find(figure))
    expect(rows).toEqual(range(4, 24))
    expect(columns.length).toBeGreaterThanOrEqual(2)
    expect(columns.length).toBeLessThanOrEqual(4)
    expect(columns).toContain(13)
    expect(columns).toContain(14)
  }
})

it("is as black as MNIST's, however faint the ink", () => {
  for (const amount of [0.9, 0.5, 0.3]) {
    expect(Math.max(...(Figure.find(ink(bar, amount)) ?? []))).toBeCloseTo(1, 2)
  }
})

it("keeps the bar of a 5 that does not touch it, and leaves dirt", () => {
  const withBar = extent(Figure.find(ink((x, y) => bar(x, y) || (x >= 70 && x < 90 && y >= 10 && y < 16))))
  expect(withBar.columns.length).toBeGreaterThan(10)
  const withDirt = extent(Figure.find(ink((x, y) => bar(x, y) || (x >= 5 && x < 8 && y >= 70 && y < 73))))
  expect(withDirt).toEqual(extent(Figure.find(ink(bar))))
})

it("is not there on a blank paper, in its grain, or where only a speck is", () => {
  expect(Figure.find(ink(() => false))).toBeUndefined()
  expect(Figure.find(ink((x, y) => (x * 7 + y * 13) % 5 === 0, 0.1))).toBeUndefined()
  expect(Figure.find(ink((x, y) => x === 50 && y >= 40 && y < 45))).toBeUndefined()
  expect(Figure.find({ amounts: new Float32Array(0), width: 0, height: 0 })).toBeUndefined()
})
