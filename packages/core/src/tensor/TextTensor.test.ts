/** A tensor of one text has the bytes of any other BYTES tensor, once they are read. */
import { expect, it } from "vitest"
import { plain, TextTensor } from "./TextTensor.ts"
import { encodeElements, reshape, sizeProblem, slice } from "./TypedTensor.ts"

const encoded = (text: string) => encodeElements([new TextEncoder().encode(text)])

it("has the bytes of its text", () => {
  for (const text of ["", "a", "schön", "\u{1f600}", "\0", "a".repeat(32), "a".repeat(33), "ö".repeat(300)]) {
    const tensor = new TextTensor([1], text)
    expect(tensor.bytes).toEqual(encoded(text))
    expect(sizeProblem(tensor)).toBeUndefined()
    expect(tensor.data).toEqual([new TextEncoder().encode(text)])
  }
})

it("makes the bytes once", () => {
  const tensor = new TextTensor([1], "text")
  expect(tensor.bytes).toBe(tensor.bytes)
})

it("takes part in the operations of tensors", () => {
  const tensor = new TextTensor([1, 1], "text")
  expect(reshape(tensor, [1]).bytes).toEqual(encoded("text"))
  expect(slice(tensor, 0, 1).bytes).toEqual(encoded("text"))
  expect(() => reshape(tensor, [2])).toThrow(RangeError)
})

it("has its bytes among its properties for code of users", () => {
  const tensor = plain(new TextTensor([1, 1], "text"))
  expect({ ...tensor }).toEqual({ datatype: "BYTES", shape: [1, 1], bytes: encoded("text") })
  expect(structuredClone(tensor)).toMatchObject({ bytes: encoded("text") })
  expect(plain(tensor)).toBe(tensor)
})
