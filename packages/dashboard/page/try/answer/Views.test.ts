import { describe, expect, it } from "vitest"
import type { Field } from "../../api/Model.ts"
import { constant } from "../tensor/Fill.ts"
import { areProbabilities, softmax, top } from "./Classes.ts"
import { pixelsOf } from "./HeatMapColours.ts"
import { pictureType } from "./PictureType.ts"
import { histogramOf, short, spreadOf } from "./Range.ts"
import { viewsOf } from "./Views.ts"
import { clipped, maxShown, visible } from "../../parts/VisibleText.ts"

const view = (datatype: string, shape: ReadonlyArray<number>, others: Partial<Field> = {}) => {
  const field = { name: "y", datatype, dims: shape, form: "tensor", optional: false, labels: [] } as const
  const tensor = constant(datatype, shape, 0)
  return viewsOf({ name: "y", tensor, field: { ...field, schema: undefined, default: undefined, ...others } })[0]
}

describe("an output is shown as", () => {
  it.each([
    ["FP32", [10], {}, "classes"],
    ["FP32", [1, 1000], {}, "classes"],
    ["FP32", [1001], {}, "values"],
    ["FP32", [10], { dims: ["n"] }, "values"],
    ["INT32", [10], {}, "values"],
    ["INT32", [2], { labels: ["a", "b"] }, "classes"],
    ["INT32", [1], { form: "label", labels: ["a", "b"] }, "label"],
    ["FP32", [1], { form: "scalar" }, "number"],
    ["FP32", [5, 4], { dims: ["faces", 4] }, "table"],
    ["FP32", [28, 28], {}, "heat map"],
    ["FP32", [3, 28, 28], {}, "picture"],
    ["UINT8", [28, 28, 3], {}, "picture"],
    ["FP32", [12, 100, 64], {}, "heat map"],
    ["FP32", [0, 4], {}, "values"],
    ["BYTES", [3], {}, "bytes"],
  ] as const)("%s%j %j: %s", (datatype, shape, others, expected) => {
    expect(view(datatype, shape, others)).toBe(expected)
  })
})

it("classes are those with the largest scores, with probabilities", () => {
  expect(top([1, 3, 2], ["a", "b"], 2).map(({ label, score }) => [label, score])).toEqual([
    ["b", 3],
    ["2", 2],
  ])
  expect(areProbabilities([0.2, 0.8])).toBe(true)
  expect(areProbabilities([0.2, 0.2])).toBe(false)
  expect(areProbabilities([NaN, 1])).toBe(false)
  expect(softmax([1000, 1000])).toEqual([0.5, 0.5])
  expect(top([0.2, 0.8], [], 1)[0]?.probability).toBe(0.8)
})

it("controls and changes of direction are visible, and texts keep the rest", () => {
  expect(visible("a\tb\nc \u05e9 😀")).toBe("a\tb\nc \u05e9 😀")
  expect(visible("\u0000\u001b\u007f\u202e\u2066\u200b\u0085")).toBe("␀␛␡\\u202e\\u2066\\u200b\\u0085")
  expect(clipped("x".repeat(maxShown + 5))[1]).toBe(5)
})

it("the range leaves out what is not finite", () => {
  const spread = spreadOf([1, NaN, 3, Infinity])
  expect(spread).toEqual({ least: 1, most: 3, mean: 2, notFinite: 2 })
  expect(histogramOf([1, NaN, 3, 3], spread, 2)).toEqual([1, 2])
  expect(histogramOf([5, 5], spreadOf([5, 5]), 3)).toEqual([2, 0, 0])
  expect([short(0.123456), short(1234567), short(NaN)]).toEqual(["0.1235", "1234567", "NaN"])
})

it("a heat map samples large matrices, and has a colour for NaN", () => {
  expect(pixelsOf(new Float32Array(2000 * 3), 2000, 3, [0, 1])).toMatchObject({ width: 3, height: 512 })
  const { data } = pixelsOf([0, 1, NaN], 1, 3, [0, 1])
  expect([...data]).toEqual([68, 1, 84, 255, 253, 231, 37, 255, 128, 128, 128, 255])
})

it("pictures are known by their first bytes", () => {
  const bytes = (...start: ReadonlyArray<number>) => Uint8Array.from({ length: 40 }, (_, index) => start[index] ?? 0)
  expect(pictureType(bytes(0xff, 0xd8, 0xff))).toBe("image/jpeg")
  expect(pictureType(bytes(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a))).toBe("image/png")
  expect(pictureType(new TextEncoder().encode("<svg onload='alert(1)' xmlns='http://www.w3.org/2000/svg'/>"))).toBe(
    undefined,
  )
})
