import { describe, expect, it } from "vitest"
import { read } from "./NumpyFile.ts"
import { textOf } from "./Tensor.ts"

const file = (dtype: string, shape: string, data: ArrayBufferView, order = "False", version = 1): Uint8Array => {
  const size = version === 1 ? 10 : 12
  const text = `{'descr': '${dtype}', 'fortran_order': ${order}, 'shape': (${shape}), }`
  const header = new TextEncoder().encode(`${text.padEnd(127 - size)}\n`)
  const bytes = new Uint8Array(size + header.length + data.byteLength)
  bytes.set([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, version, 0])
  const view = new DataView(bytes.buffer)
  if (version === 1) view.setUint16(8, header.length, true)
  else view.setUint32(8, header.length, true)
  bytes.set(header, size)
  bytes.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), size + header.length)
  return bytes
}

describe("reads", () => {
  it("numbers of the datatype, by rows", () => {
    const tensor = read(file("<f4", "2, 3", Float32Array.of(1, 2, 3, 4, 5, 6)), "FP32", ["n", 3])
    expect(tensor).toEqual({ datatype: "FP32", shape: [2, 3], data: Float32Array.of(1, 2, 3, 4, 5, 6) })
  })

  it("columns first, as Fortran has them", () => {
    const tensor = read(file("<i4", "2, 3", Int32Array.of(1, 4, 2, 5, 3, 6), "True"), "INT32", [2, 3])
    expect([...tensor.data]).toEqual([1, 2, 3, 4, 5, 6])
  })

  it("big endian, and version 2", () => {
    const tensor = read(
      file(
        ">i8",
        "2,",
        Uint8Array.from({ length: 16 }, (_, at) => at % 8),
        "False",
        2,
      ),
      "INT64",
      [2],
    )
    expect([...tensor.data]).toEqual([0x01020304050607n, 0x01020304050607n])
  })

  it("one number without dims, and a batch dimension of 1", () => {
    expect(read(file("|b1", "", Uint8Array.of(1)), "BOOL", [1]).shape).toEqual([1])
    expect(read(file("|u1", "1, 2", Uint8Array.of(1, 2)), "UINT8", [2]).shape).toEqual([2])
  })

  it("strings of both kinds", () => {
    const texts = (data: Iterable<unknown>) =>
      Array.from(data, (bytes) => (bytes instanceof Uint8Array ? textOf(bytes) : undefined))
    const narrow = Uint8Array.from([97, 98, 0, 99, 0, 0])
    expect(texts(read(file("|S3", "2,", narrow), "BYTES", ["n"]).data)).toEqual(["ab", "c"])
    const wide = Uint32Array.from([0x1f600, 0, 97, 98])
    expect(texts(read(file("<U2", "2,", wide), "BYTES", ["n"]).data)).toEqual(["😀", "ab"])
  })
})

describe("refuses", () => {
  const floats = Float32Array.of(1, 2)

  it.each([
    [
      file("<f8", "1,", floats),
      "FP32",
      ["n"],
      'the file has float64, but FP32 needs float32: use array.astype("float32")',
    ],
    [file("|O", "1,", floats), "FP32", ["n"], `the file has '|O', but FP32 needs float32: use array.astype("float32")`],
    [file("<f4", "2,", floats), "FP32", [3], "the shape [2] does not fit [3]"],
    [file("<f4", "3,", floats), "FP32", ["n"], "the file ends after 8 of 12 bytes"],
    [file("<f4", "99999999999,", floats), "FP32", ["n"], "[99999999999] has more than 16777216 elements"],
    [file("<f4", "2,", floats), "BF16", [2], "numpy has no dtype for BF16: paste the values instead"],
    [new Uint8Array(20), "FP32", [2], "this is not a .npy file"],
    [file("<f4'", "a", floats), "FP32", [2], "the .npy file has no header of one plain array"],
  ])("%#", (bytes, datatype, dims, message) => {
    expect(() => read(bytes, datatype, dims)).toThrow(message)
  })
})
