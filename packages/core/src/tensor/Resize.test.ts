import { expect, it } from "@effect/vitest"
import { elementBytes } from "./Element.ts"
import { resize } from "./Resize.ts"
import { make, slice, TypedTensor } from "./TypedTensor.ts"

const element = (...args: Parameters<typeof elementBytes>) => elementBytes(...args) ?? new Uint8Array()

const read = ({ bytes, shape }: TypedTensor) =>
  [...new TypedTensor("BYTES", shape, bytes).data].map((text) => new TextDecoder().decode(text))

it("fills up and cuts off at the end of any axis", () => {
  const tensor = make("INT16", [2, 2, 2], Int16Array.of(1, 2, 3, 4, 5, 6, 7, 8))
  const wider = resize(tensor, 1, 3, element("INT16", -1))
  expect(wider.shape).toEqual([2, 3, 2])
  expect([...wider.data]).toEqual([1, 2, 3, 4, -1, -1, 5, 6, 7, 8, -1, -1])
  const deeper = resize(tensor, 2, 3, element("INT16"))
  expect([...deeper.data]).toEqual([1, 2, 0, 3, 4, 0, 5, 6, 0, 7, 8, 0])
  expect([...resize(wider, 1, 2, element("INT16")).data]).toEqual([...tensor.data])
  expect([...resize(tensor, 1, 1, element("INT16")).data]).toEqual([1, 2, 5, 6])
  expect(resize(tensor, 1, 2, element("INT16"))).toBe(tensor)
})

it("cuts a single row without a copy, and nothing to nothing", () => {
  const row = make("FP32", [1, 3], Float32Array.of(1, 2, 3))
  const cut = resize(row, 1, 2, element("FP32"))
  expect(cut.bytes.buffer).toBe(row.bytes.buffer)
  expect([...cut.data]).toEqual([1, 2])
  expect(resize(row, 1, 0, element("FP32")).bytes).toHaveLength(0)
  expect([...resize(make("FP32", [1, 0], new Float32Array()), 1, 2, element("FP32", 0.5)).data]).toEqual([0.5, 0.5])
})

it("fills up BYTES of any length, also those of a slice", () => {
  const texts = ["a", "", "ccc", "d"].map((text) => new TextEncoder().encode(text))
  const tensor = slice(make("BYTES", [2, 2], texts), 1, 2)
  const wider = resize(tensor, 1, 3, element("BYTES", "…"))
  expect(read(wider)).toEqual(["ccc", "d", "…"])
  expect(read(resize(wider, 1, 1, element("BYTES")))).toEqual(["ccc"])
})

it("names elements that a datatype cannot hold", () => {
  expect(elementBytes("INT8", 128)).toBeUndefined()
  expect(elementBytes("UINT64", -1n)).toBeUndefined()
  expect(elementBytes("INT64", 1)).toBeUndefined()
  expect(elementBytes("BOOL", 1)).toBeUndefined()
  expect(elementBytes("BYTES", 1)).toBeUndefined()
  expect([...element("BOOL", true)]).toEqual([1])
  expect([...element("FP32", 0.1)]).toEqual([...new Uint8Array(Float32Array.of(0.1).buffer)])
  expect([...element("INT64", -1n)]).toEqual(Array(8).fill(255))
})
