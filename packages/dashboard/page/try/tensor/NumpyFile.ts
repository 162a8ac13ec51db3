/**
 * Reads `.npy` files, as `numpy.save` writes them:
 * https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
 */
import { Invalid } from "../Invalid.ts"
import { rowOf } from "./Datatype.ts"
import { type Dims, fit } from "./Shape.ts"
import { checkCount, fromBytes, type Tensor } from "./Tensor.ts"

interface Header {
  /** Such as `<f4`. */
  readonly dtype: string
  readonly isColumnMajor: boolean
  readonly shape: ReadonlyArray<number>
  /** Where the data begins. */
  readonly offset: number
}

const dtypes: Readonly<Record<string, string>> = {
  BOOL: "b1",
  UINT8: "u1",
  UINT16: "u2",
  UINT32: "u4",
  UINT64: "u8",
  INT8: "i1",
  INT16: "i2",
  INT32: "i4",
  INT64: "i8",
  FP16: "f2",
  FP32: "f4",
  FP64: "f8",
}

/** Names that numpy's `astype` takes. */
const names: Readonly<Record<string, string>> = {
  b1: "bool",
  u1: "uint8",
  u2: "uint16",
  u4: "uint32",
  u8: "uint64",
  i1: "int8",
  i2: "int16",
  i4: "int32",
  i8: "int64",
  f2: "float16",
  f4: "float32",
  f8: "float64",
}

/** Reads a file as a tensor of this datatype, whose shape fits the dims. */
export const read = (file: Uint8Array, datatype: string, dims: Dims): Tensor => {
  const { dtype, isColumnMajor, shape, offset } = readHeader(file)
  const kind = dtype.slice(1)
  if (datatype === "BYTES" && /^[SU]\d+$/.test(kind)) return texts(file, { dtype, isColumnMajor, shape, offset }, dims)
  const wanted = dtypes[datatype]
  if (wanted === undefined) throw new Invalid(`numpy has no dtype for ${datatype}: paste the values instead`)
  if (kind !== wanted) {
    const found = names[kind] ?? `'${dtype}'`
    const { [wanted]: name = wanted } = names
    throw new Invalid(`the file has ${found}, but ${datatype} needs ${name}: use array.astype("${name}")`)
  }
  const { width } = rowOf(datatype)
  const bytes = dataOf(file, shape, offset, width)
  if (dtype.startsWith(">")) swap(bytes, width)
  const ordered = isColumnMajor ? rowMajor(bytes, shape, width) : bytes
  return fromBytes(datatype, fit(shape, dims), ordered)
}

/** A copy of the data. */
const dataOf = (file: Uint8Array, shape: ReadonlyArray<number>, offset: number, width: number): Uint8Array => {
  const size = checkCount(shape) * width
  if (file.length - offset < size) throw new Invalid(`the file ends after ${file.length - offset} of ${size} bytes`)
  return file.slice(offset, offset + size)
}

const readHeader = (file: Uint8Array): Header => {
  const isNumpy = file.length > 10 && String.fromCharCode(...file.subarray(0, 6)) === "\x93NUMPY"
  if (!isNumpy) throw new Invalid("this is not a .npy file")
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength)
  const [start, length] = file[6] === 1 ? [10, view.getUint16(8, true)] : [12, view.getUint32(8, true)]
  const text = new TextDecoder("latin1").decode(file.subarray(start, start + length))
  const dtype = /'descr':\s*'([^']+)'/.exec(text)?.[1]
  const order = /'fortran_order':\s*(True|False)/.exec(text)?.[1]
  const shape = /'shape':\s*\(([\d,\s]*)\)/.exec(text)?.[1]
  if (dtype === undefined || order === undefined || shape === undefined) {
    throw new Invalid("the .npy file has no header of one plain array")
  }
  const extents = shape.split(",").filter((extent) => extent.trim() !== "")
  return { dtype, isColumnMajor: order === "True", shape: extents.map(Number), offset: start + length }
}

const swap = (bytes: Uint8Array, width: number): void => {
  for (let start = 0; start < bytes.length; start += width) bytes.subarray(start, start + width).reverse()
}

/** From the order of Fortran, where the first index is the fastest. */
const rowMajor = (bytes: Uint8Array, shape: ReadonlyArray<number>, width: number): Uint8Array => {
  const result = new Uint8Array(bytes.length)
  const index = shape.map(() => 0)
  for (let to = 0; to < bytes.length; to += width) {
    let from = 0
    for (let axis = shape.length - 1; axis >= 0; axis--) from = from * (shape[axis] ?? 1) + (index[axis] ?? 0)
    result.set(bytes.subarray(from * width, (from + 1) * width), to)
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      index[axis] = (index[axis] ?? 0) + 1
      if ((index[axis] ?? 0) < (shape[axis] ?? 1)) break
      index[axis] = 0
    }
  }
  return result
}

/** Arrays of strings, whose elements are filled up with zeros. */
const texts = (file: Uint8Array, { dtype, isColumnMajor, shape, offset }: Header, dims: Dims): Tensor => {
  const characters = Number(dtype.slice(2))
  const isUnicode = dtype[1] === "U"
  const width = characters * (isUnicode ? 4 : 1)
  const bytes = dataOf(file, shape, offset, width)
  if (isUnicode && dtype.startsWith(">")) swap(bytes, 4)
  const ordered = isColumnMajor ? rowMajor(bytes, shape, width) : bytes
  const view = new DataView(ordered.buffer)
  const encoder = new TextEncoder()
  const data = Array.from({ length: checkCount(shape) }, (_, element) => {
    const start = element * width
    if (!isUnicode) {
      const padded = ordered.subarray(start, start + width)
      return padded.slice(0, padded.findLastIndex((byte) => byte !== 0) + 1)
    }
    const points = Array.from({ length: characters }, (_, at) => view.getUint32(start + 4 * at, true))
    const used = points.slice(0, points.findLastIndex((point) => point !== 0) + 1)
    return encoder.encode(String.fromCodePoint(...used.map((point) => (point > 0x10ffff ? 0xfffd : point))))
  })
  return { datatype: "BYTES", shape: fit(shape, dims), data }
}
