import { describe, expect, it } from "vitest"
import { Invalid } from "../Invalid.ts"
import { checkCount, fromBytes, maxElements, numberText, ofNumbers, textOf, toBytes } from "./Tensor.ts"

describe("bytes of a tensor", () => {
  it.each([
    ["BOOL", [0, 1]],
    ["UINT8", [0, 255]],
    ["INT16", [-32768, 32767]],
    ["UINT32", [0, 4294967295]],
    ["INT64", [-(2n ** 63n), 2n ** 63n - 1n]],
    ["UINT64", [0n, 2n ** 64n - 1n]],
    ["FP16", [0.5, -65504]],
    ["BF16", [1.5, -Infinity]],
    ["FP32", [0.5, -Infinity]],
    ["FP64", [0.1, 1e300]],
  ])("of %s come back", (datatype, values) => {
    const tensor = ofNumbers(datatype, [2], values)
    expect(fromBytes(datatype, [2], toBytes(tensor))).toEqual(tensor)
  })

  it("of BYTES have a length before each element", () => {
    const data = [Uint8Array.of(1, 2), new Uint8Array(), Uint8Array.of(3)]
    const bytes = toBytes({ datatype: "BYTES", shape: [3], data })
    expect([...bytes]).toEqual([2, 0, 0, 0, 1, 2, 0, 0, 0, 0, 1, 0, 0, 0, 3])
    expect(fromBytes("BYTES", [3], bytes).data).toEqual(data)
  })
})

it("a number is the shortest text that has it back", () => {
  expect(numberText("FP32", Math.fround(0.1))).toBe("0.1")
  expect(numberText("FP64", Math.fround(0.1))).toBe("0.10000000149011612")
  expect(numberText("FP16", 0.0999755859375)).toBe("0.1")
  expect(numberText("FP32", -Infinity)).toBe("-Infinity")
  expect(numberText("INT64", 9007199254740993n)).toBe("9007199254740993")
})

it("bytes that are not UTF-8 are no text", () => {
  expect(textOf(Uint8Array.of(0xff))).toBe(undefined)
  expect(textOf(new TextEncoder().encode("\ufeffé"))).toBe("\ufeffé")
})

it("a tensor that is too large is refused before it is made", () => {
  expect(() => checkCount([maxElements, 2])).toThrow(Invalid)
  expect(checkCount([maxElements])).toBe(maxElements)
})
