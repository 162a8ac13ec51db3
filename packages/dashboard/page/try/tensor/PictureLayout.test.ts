import { describe, expect, it } from "vitest"
import { layoutOf, toPixels, toTensor } from "./PictureLayout.ts"
import { numbersOf } from "./Tensor.ts"

describe("a tensor that may be a picture", () => {
  it.each([
    ["FP32", [1, 28, 28], "grey 28×28"],
    ["FP32", [28, 28], "grey 28×28"],
    ["FP32", [3, 224, 200], "colour 200×224"],
    ["UINT8", [64, 32, 3], "colour 32×64, interleaved"],
    ["FP32", [1, 3, -1, "w"], "colour ?×?"],
    ["FP16", ["height", "width"], "grey ?×?"],
    ["FP32", ["n", 28], "none"],
    ["FP32", [-1, -1], "none"],
    ["FP32", [3, 4, 4], "none"],
    ["INT64", [28, 28], "none"],
    ["BYTES", [28, 28], "none"],
    ["FP32", [2, 28, 28], "none"],
  ])("%s%j: %s", (datatype, dims, expected) => {
    const layout = layoutOf(datatype, dims)
    const shown =
      layout === undefined
        ? "none"
        : `${layout.channels === 1 ? "grey" : "colour"} ${layout.width ?? "?"}×${layout.height ?? "?"}${layout.isInterleaved ? ", interleaved" : ""}`
    expect(shown).toBe(expected)
  })
})

describe("pixels become numbers", () => {
  // Red, then white.
  const pixels = { width: 2, height: 1, data: [255, 0, 0, 255, 255, 255, 255, 255] }
  const options = { scale: "unit", isInverted: false } as const

  it("as planes, or interleaved", () => {
    const planes = { channels: 3, height: 1, width: 2, isInterleaved: false } as const
    expect(toTensor(pixels, "FP32", [3, 1, 2], planes, options)).toEqual({
      datatype: "FP32",
      shape: [3, 1, 2],
      data: Float32Array.of(1, 1, 0, 1, 0, 1),
    })
    const interleaved = { ...planes, isInterleaved: true }
    const bytes = toTensor(pixels, "UINT8", [1, 1, 2, 3], interleaved, { ...options, scale: "byte" })
    expect(bytes.shape).toEqual([1, 1, 2, 3])
    expect([...bytes.data]).toEqual([255, 0, 0, 255, 255, 255])
    expect(toPixels([255, 0, 0, 255, 255, 255], interleaved, 2, 1, [0, 255])).toEqual(
      Uint8ClampedArray.from(pixels.data),
    )
  })

  it("as brightness, inverted, around 0", () => {
    const grey = { channels: 1, height: 1, width: 2, isInterleaved: false } as const
    const tensor = toTensor(pixels, "FP64", [1, 2], grey, { scale: "signed", isInverted: true })
    expect(Array.from(numbersOf(tensor), (value) => value.toFixed(3))).toEqual(["0.402", "-1.000"])
  })

  it("by ImageNet's mean and deviation", () => {
    const planes = { channels: 3, height: 1, width: 2, isInterleaved: false } as const
    const tensor = toTensor(pixels, "FP64", [3, 1, 2], planes, { ...options, scale: "imagenet" })
    expect(Array.from(numbersOf(tensor), (value) => value.toFixed(2))).toEqual([
      "2.25",
      "2.25",
      "-2.04",
      "2.43",
      "-1.80",
      "2.64",
    ])
  })
})
