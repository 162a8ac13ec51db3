import { expect, it } from "@effect/vitest"
import * as DataType from "./DataType.ts"
import { concat, make, reshape, sizeProblem, slice, split, TypedTensor } from "./TypedTensor.ts"

const text = (value: string) => new TextEncoder().encode(value)

it("knows every datatype of the protocol and its width", () => {
  const widths = DataType.all.map((datatype) => [datatype, DataType.byteWidth(datatype)])
  expect(Object.fromEntries(widths)).toEqual({
    BOOL: 1,
    UINT8: 1,
    UINT16: 2,
    UINT32: 4,
    UINT64: 8,
    INT8: 1,
    INT16: 2,
    INT32: 4,
    INT64: 8,
    FP16: 2,
    FP32: 4,
    FP64: 8,
    BF16: 2,
    BYTES: undefined,
  })
  expect(DataType.isDataType("FP32")).toBe(true)
  expect(DataType.isDataType("toString")).toBe(false)
})

it("shows each datatype as its typed array", () => {
  expect(make("INT64", [1], BigInt64Array.of(-(2n ** 63n))).data[0]).toBe(-(2n ** 63n))
  expect(make("FP16", [2], Float16Array.of(1.5, -2)).data).toBeInstanceOf(Float16Array)
  expect(make("BOOL", [1], Uint8Array.of(1)).data).toBeInstanceOf(Uint8Array)
  expect(make("BYTES", [2], [text("a"), text("")]).data).toEqual([text("a"), text("")])
})

it("uses a typed array as it is, without a copy", () => {
  const data = Float32Array.of(1, 2, 3)
  expect(make("FP32", [3], data).bytes.buffer).toBe(data.buffer)
})

it("reads bytes that are not aligned", () => {
  const body = new Uint8Array(9)
  new DataView(body.buffer).setFloat32(1, 1.5, true)
  new DataView(body.buffer).setFloat32(5, -2.5, true)
  expect([...new TypedTensor("FP32", [2], body.subarray(1)).data]).toEqual([1.5, -2.5])
})

it("reads unaligned bytes of a Node Buffer, whose slice does not copy", () => {
  const buffer = Buffer.alloc(9)
  buffer.writeFloatLE(1.5, 1)
  expect([...new TypedTensor("FP32", [2], buffer.subarray(1)).data]).toEqual([1.5, 0])
})

it("refuses elements that do not fill the shape", () => {
  expect(() => make("FP32", [2, 2], Float32Array.of(1, 2, 3))).toThrow(
    "A tensor of shape [2,2] has 4 elements, but 3 were given.",
  )
})

it("slices rows as views", () => {
  const tensor = make("INT16", [3, 2], Int16Array.of(1, 2, 3, 4, 5, 6))
  const rows = slice(tensor, 1, 3)
  expect(rows.shape).toEqual([2, 2])
  expect([...rows.data]).toEqual([3, 4, 5, 6])
  expect(rows.bytes.buffer).toBe(tensor.bytes.buffer)
})

it("slices rows of BYTES, whose elements differ in length", () => {
  const tensor = make("BYTES", [3, 1], [text("one"), text(""), text("three")])
  expect(slice(tensor, 0, 1).data).toEqual([text("one")])
  expect(slice(tensor, 1, 3).data).toEqual([text(""), text("three")])
})

it("cuts a tensor into parts that are its slices", () => {
  const texts = make("BYTES", [4, 1], [text("one"), text(""), text("three"), text("4")])
  const numbers = make("INT16", [4, 2], Int16Array.of(1, 2, 3, 4, 5, 6, 7, 8))
  for (const tensor of [texts, numbers]) {
    const parts = split(tensor, [1, 2, 1])
    const slices = [slice(tensor, 0, 1), slice(tensor, 1, 3), slice(tensor, 3, 4)]
    expect(parts.map(({ shape }) => shape)).toEqual(slices.map(({ shape }) => shape))
    expect(parts.map(({ bytes }) => [...bytes])).toEqual(slices.map(({ bytes }) => [...bytes]))
  }
})

it("joins tensors along axis 0, and gives a single one back as it is", () => {
  const one = make("FP64", [1, 2], Float64Array.of(1, 2))
  const two = make("FP64", [2, 2], Float64Array.of(3, 4, 5, 6))
  expect(concat([one])).toBe(one)
  const joined = concat([one, two])
  expect(joined.shape).toEqual([3, 2])
  expect([...joined.data]).toEqual([1, 2, 3, 4, 5, 6])
  const bytes = concat([make("BYTES", [1], [text("a")]), make("BYTES", [2], [text("bc"), text("")])])
  expect(bytes.data).toEqual([text("a"), text("bc"), text("")])
})

it("refuses to join tensors that differ beyond axis 0", () => {
  const one = make("FP32", [1, 1], Float32Array.of(1))
  const three = make("FP32", [1, 3], Float32Array.of(1, 2, 3))
  expect(() => concat([one, three])).toThrow("Tensors of FP32[1,1] and FP32[1,3] cannot be joined along axis 0.")
})

it("reports a tensor whose bytes do not match its shape", () => {
  expect(sizeProblem(make("FP32", [2], Float32Array.of(1, 2)))).toBeUndefined()
  expect(sizeProblem(new TypedTensor("FP32", [3], new Uint8Array(8)))).toBe("expected 12 bytes for FP32[3], got 8")
  expect(sizeProblem(make("BYTES", [2], [text("a"), text("")]))).toBeUndefined()
  expect(sizeProblem(new TypedTensor("BYTES", [1], Uint8Array.of(9, 0)))).toBe(
    "element 0 needs 4 bytes, but 2 are left",
  )
  expect(sizeProblem(new TypedTensor("BYTES", [1], Uint8Array.of(9, 0, 0, 0, 1)))).toBe(
    "element 0 needs 9 bytes, but 1 are left",
  )
  expect(sizeProblem(new TypedTensor("BYTES", [2], Uint8Array.of(0, 0, 0, 0)))).toBe("expected 2 elements, got 1")
})

it("reshapes without a copy, to as many elements", () => {
  const tensor = make("INT8", [4], Int8Array.of(1, 2, 3, 4))
  expect(reshape(tensor, [2, 2]).bytes).toBe(tensor.bytes)
  expect(() => reshape(tensor, [5])).toThrow("A tensor of shape [4] cannot be reshaped to [5].")
})
