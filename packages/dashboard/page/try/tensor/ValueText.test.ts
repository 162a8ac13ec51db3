import { describe, expect, it } from "vitest"
import { Invalid } from "../Invalid.ts"
import type { Tensor } from "./Tensor.ts"
import { elementText, read, readNumber } from "./ValueText.ts"

describe("one number", () => {
  it.each([
    ["FP32", " -1.5e3 ", -1500],
    ["FP64", ".5", 0.5],
    ["FP32", "-inf", -Infinity],
    ["FP32", "NaN", NaN],
    ["INT8", "-128", -128],
    ["UINT64", "18446744073709551615", 2n ** 64n - 1n],
    ["INT64", "+9007199254740993", 9007199254740993n],
    ["BOOL", "True", 1],
  ])("%s: %s", (datatype, text, expected) => {
    expect(readNumber(text, datatype)).toEqual(expected)
  })

  it.each([
    ["INT8", "128", "128 is not in the range of INT8, -128 to 127"],
    ["UINT8", "-1", "-1 is not in the range of UINT8, 0 to 255"],
    ["INT32", "1.5", '"1.5" is not an integer'],
    ["FP32", "", '"" is not a number'],
    ["FP32", "0x10", '"0x10" is not a number'],
    ["FP16", "70000", "70000 is not in the range of FP16, ±65504"],
    ["BOOL", "2", '"2" is not true or false'],
  ])("%s: %s is refused", (datatype, text, message) => {
    expect(() => readNumber(text, datatype)).toThrow(new Invalid(message))
  })
})

describe("all values", () => {
  it.each([
    ["1 2,3;4\n", ["n"], [4]],
    ["1,2,3,4,5,6", ["n", 3], [2, 3]],
    ["[1, 2, 3, 4]", [2, 2], [2, 2]],
    ["[[1, 2], [3, 4], [5, 6]]", ["n", "m"], [3, 2]],
    ["[[[1, 2]]]", [1, 2], [1, 2]],
    ["[]", ["n"], [0]],
    ["[[], []]", ["n", "m"], [2, 0]],
    ["", ["n"], [0]],
  ])("%s is a tensor of %j", (text, dims, shape) => {
    expect(read(text, "FP32", dims).shape).toEqual(shape)
  })

  it("integers of 64 bits stay exact in JSON", () => {
    expect([...read("[9007199254740993, -1]", "INT64", ["n"]).data]).toEqual([9007199254740993n, -1n])
  })

  it("texts are lines, or strings of JSON", () => {
    const texts = (text: string) => textsOf(read(text, "BYTES", ["n"]))
    expect(texts("a b\n\nc\n")).toEqual(["a b", "", "c"])
    expect(texts('["a,]\\n", "\\u00e9"]')).toEqual(["a,]\n", "é"])
  })

  it.each([
    ["1 2 3", [2], "[2] has 2 values, but these are 3"],
    ["1 2 3", ["n", 2], "[n, 2] needs a multiple of 2 values, but these are 3"],
    ["1 2", ["n", "m"], "[n, m] has 2 variable dims: write nested lists as JSON"],
    ["[[1, 2], [3]]", ["n", "m"], "lists of the same depth must have the same length"],
    ["[1, [2]]", ["n"], "lists of the same depth must have the same length"],
    ["[[1], 2]", ["n"], "lists of the same depth must have the same length"],
    ["[1, 2", ["n"], "the list of JSON does not end"],
    ["[1,, 2]", ["n"], "not a list of JSON, at character 4"],
    ["[1 2]", ["n"], "not a list of JSON, at character 3"],
    ["[1] [2]", ["n"], "not a list of JSON, at character 4"],
    ["[[1, 2]]", [3], "the shape [1, 2] does not fit [3]"],
  ])("%s is refused for %j", (text, dims, message) => {
    expect(() => read(text, "FP32", dims)).toThrow(new Invalid(message))
  })
})

const textsOf = ({ data, shape: [count = 0] }: Tensor) =>
  Array.from({ length: count }, (_, index) => elementText("BYTES", data, index))
