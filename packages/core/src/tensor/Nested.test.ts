import { describe, expect, it } from "@effect/vitest"
import * as DataType from "./DataType.ts"
import * as Tensor from "../Tensor.ts"

const bytes = (...values: ReadonlyArray<number>) => Uint8Array.from(values)

/** Two rows of two of each datatype, with what lies at its edges. */
const rows = {
  BOOL: [
    [true, false],
    [false, true],
  ],
  UINT8: [
    [0, 255],
    [1, 2],
  ],
  UINT16: [
    [0, 65535],
    [1, 2],
  ],
  UINT32: [
    [0, 2 ** 32 - 1],
    [1, 2],
  ],
  UINT64: [
    [0n, 2n ** 64n - 1n],
    [1n, 2n],
  ],
  INT8: [
    [-128, 127],
    [1, 2],
  ],
  INT16: [
    [-32768, 32767],
    [1, 2],
  ],
  INT32: [
    [-(2 ** 31), 2 ** 31 - 1],
    [1, 2],
  ],
  INT64: [
    [-(2n ** 63n), 2n ** 63n - 1n],
    [1n, 2n],
  ],
  FP16: [
    [0.5, 65504],
    [-0, Infinity],
  ],
  FP32: [
    [0.5, -(2 ** 100)],
    [NaN, Infinity],
  ],
  FP64: [
    [Math.PI, Number.MIN_VALUE],
    [NaN, -Infinity],
  ],
  BF16: [
    [0x3f80, 0xffff],
    [0, 1],
  ],
  BYTES: [
    [bytes(0, 255), bytes()],
    [bytes(1), bytes(0)],
  ],
} as const

describe("there and back", () => {
  const tensors: ReadonlyArray<Tensor.Tensor> = [
    Tensor.fromNested("BOOL", rows.BOOL),
    Tensor.fromNested("UINT8", rows.UINT8),
    Tensor.fromNested("UINT16", rows.UINT16),
    Tensor.fromNested("UINT32", rows.UINT32),
    Tensor.fromNested("UINT64", rows.UINT64),
    Tensor.fromNested("INT8", rows.INT8),
    Tensor.fromNested("INT16", rows.INT16),
    Tensor.fromNested("INT32", rows.INT32),
    Tensor.fromNested("INT64", rows.INT64),
    Tensor.fromNested("FP16", rows.FP16),
    Tensor.fromNested("FP32", rows.FP32),
    Tensor.fromNested("FP64", rows.FP64),
    Tensor.fromNested("BF16", rows.BF16),
    Tensor.fromNested("BYTES", rows.BYTES),
  ]

  it("every datatype", () => {
    expect(tensors.map(({ datatype }) => datatype).toSorted()).toEqual(DataType.all.toSorted())
  })

  it.each(tensors)("$datatype", (tensor) => {
    expect(tensor.shape).toEqual([2, 2])
    expect(Tensor.toNested(tensor)).toEqual(rows[tensor.datatype])
  })

  it("any number of axes, and none", () => {
    expect(Tensor.toNested(Tensor.make("INT32", [2, 1, 3], Int32Array.of(1, 2, 3, 4, 5, 6)))).toEqual([
      [[1, 2, 3]],
      [[4, 5, 6]],
    ])
    expect(Tensor.toNested(Tensor.make("INT32", [], Int32Array.of(7)))).toBe(7)
    expect(Tensor.fromNested("INT32", 7)).toMatchObject({ shape: [], data: Int32Array.of(7) })
    expect(Tensor.fromNested("INT32", [])).toMatchObject({ shape: [0], data: new Int32Array(0) })
    expect(Tensor.toNested(Tensor.fromNested("INT32", [[], []]))).toEqual([[], []])
    expect(Tensor.toNested(Tensor.make("INT32", [0, 2], new Int32Array(0)))).toEqual([])
  })

  it("texts are their UTF-8", () => {
    expect(Tensor.fromNested("BYTES", ["ä", ""]).data).toEqual([bytes(0xc3, 0xa4), bytes()])
  })
})

it("knows its shape, and elements are those of the datatype", () => {
  const tensor: Tensor.Tensor<"FP32", readonly [1, 2]> = Tensor.fromNested("FP32", [[1, 2]])
  const shown: ReadonlyArray<ReadonlyArray<number>> = Tensor.toNested(tensor)
  expect(shown).toEqual([[1, 2]])
  // @ts-expect-error 64-bit integers are bigint
  expect(() => Tensor.fromNested("INT64", [1])).toThrow("INT64 cannot hold 1.")
  // @ts-expect-error three are not two
  const other: Tensor.Tensor<"FP32", readonly [2]> = Tensor.fromNested("FP32", [1, 2, 3])
  expect(other.shape).toEqual([3])
})

describe("refuses", () => {
  it.each([
    ["UINT8", 256],
    ["INT8", 1.5],
    ["UINT32", -1],
    ["INT16", NaN],
  ] as const)("refuses a value out of range of %s: %d", (datatype, value) => {
    expect(() => Tensor.fromNested(datatype, [value])).toThrow(new RangeError(`${datatype} cannot hold ${value}.`))
  })

  it("rows of different lengths, and arrays mixed with elements", () => {
    expect(() => Tensor.fromNested("FP32", [[1, 2], [3]])).toThrow(
      "Arrays of the shape [2,2] have one extent for each axis, but axis 1 has an array of 1.",
    )
    expect(() => Tensor.fromNested("FP32", [1, [2]])).toThrow(
      "[2] have one extent for each axis, but axis 1 has an array",
    )
    expect(() => Tensor.fromNested("FP32", [[1], 2])).toThrow(
      "[2,1] have one extent for each axis, but axis 1 has an element",
    )
  })
})
