/**
 * Converts fields of one element without a Schema, which costs several microseconds for each value. A codec gives up on
 * everything unusual, with undefined: then the Schema of the field converts the value, or says why it is refused. The
 * fields are in Field.ts.
 */
import { byteWidth, type FixedDataType } from "../tensor/DataType.ts"
import * as SmallMemory from "../tensor/SmallMemory.ts"
import { TypedTensor } from "../tensor/TypedTensor.ts"

export interface ElementCodec {
  readonly encode: (value: unknown) => TypedTensor | undefined
  readonly decode: (tensor: TypedTensor) => string | number | bigint | boolean | undefined
}

/** The shape of all tensors here. */
const shape = [1] as const

const isOne = ({ shape }: TypedTensor): boolean => shape.length === 1 && shape[0] === 1

/** Characters up to which a loop is faster than a TextEncoder or a TextDecoder. */
const shortText = 32

/** BYTES [1] as a text. */
export const text: ElementCodec = {
  encode: (value) => {
    if (typeof value !== "string" || value.length > shortText) return undefined
    const bytes = SmallMemory.allocate(4 + value.length)
    bytes[0] = value.length
    for (let index = 0; index < value.length; index++) {
      const code = value.charCodeAt(index)
      if (code >= 0x80) return undefined
      bytes[4 + index] = code
    }
    return new TypedTensor("BYTES", shape, bytes)
  },
  decode: (tensor) => {
    const { datatype, bytes } = tensor
    if (datatype !== "BYTES" || !isOne(tensor) || bytes.length > 4 + shortText) return undefined
    if (bytes[0] !== bytes.length - 4 || bytes[1] !== 0 || bytes[2] !== 0 || bytes[3] !== 0) return undefined
    let text = ""
    for (let index = 4; index < bytes.length; index++) {
      const byte = bytes[index] ?? 0
      if (byte >= 0x80) return undefined
      text += String.fromCharCode(byte)
    }
    return text
  },
}

/** Reads and writes one element. `write` is called for values of its type only, and may change the value. */
interface Access {
  readonly type: "number" | "bigint"
  /** Whether only values that are read as they were written have a tensor. */
  readonly isExact: boolean
  readonly read: (view: DataView) => number | bigint
  readonly write: (view: DataView, value: number | bigint) => void
}

const integer = (read: Access["read"], write: (view: DataView, value: number) => void): Access => ({
  type: "number",
  isExact: true,
  read,
  write: (view, value) => write(view, Number(value)),
})

const float = (read: Access["read"], write: (view: DataView, value: number) => void): Access => ({
  ...integer(read, write),
  isExact: false,
})

const bigint = (read: Access["read"], write: (view: DataView, value: bigint) => void): Access => ({
  type: "bigint",
  isExact: true,
  read,
  write: (view, value) => write(view, BigInt(value)),
})

const accesses: { readonly [D in FixedDataType]?: Access } = {
  UINT8: integer(
    (view) => view.getUint8(0),
    (view, value) => view.setUint8(0, value),
  ),
  UINT16: integer(
    (view) => view.getUint16(0, true),
    (view, value) => view.setUint16(0, value, true),
  ),
  UINT32: integer(
    (view) => view.getUint32(0, true),
    (view, value) => view.setUint32(0, value, true),
  ),
  UINT64: bigint(
    (view) => view.getBigUint64(0, true),
    (view, value) => view.setBigUint64(0, value, true),
  ),
  INT8: integer(
    (view) => view.getInt8(0),
    (view, value) => view.setInt8(0, value),
  ),
  INT16: integer(
    (view) => view.getInt16(0, true),
    (view, value) => view.setInt16(0, value, true),
  ),
  INT32: integer(
    (view) => view.getInt32(0, true),
    (view, value) => view.setInt32(0, value, true),
  ),
  INT64: bigint(
    (view) => view.getBigInt64(0, true),
    (view, value) => view.setBigInt64(0, value, true),
  ),
  FP32: float(
    (view) => view.getFloat32(0, true),
    (view, value) => view.setFloat32(0, value, true),
  ),
  FP64: float(
    (view) => view.getFloat64(0, true),
    (view, value) => view.setFloat64(0, value, true),
  ),
}

/** One number of this datatype; undefined for a datatype whose values only a Schema converts. */
export const scalar = (datatype: FixedDataType): ElementCodec | undefined => {
  const access = accesses[datatype]
  const width = byteWidth(datatype) ?? 0
  if (access === undefined) return undefined
  const { type, isExact, read, write } = access
  return {
    encode: (value) => {
      if ((typeof value !== "number" && typeof value !== "bigint") || typeof value !== type) return undefined
      const bytes = SmallMemory.allocate(width)
      const view = new DataView(bytes.buffer, bytes.byteOffset, width)
      write(view, value)
      // Not exact: out of range, or with a fraction.
      return isExact && read(view) !== value ? undefined : new TypedTensor(datatype, shape, bytes)
    },
    decode: (tensor) => {
      const { bytes } = tensor
      if (tensor.datatype !== datatype || !isOne(tensor) || bytes.length !== width) return undefined
      return read(new DataView(bytes.buffer, bytes.byteOffset, width))
    },
  }
}

/** True or false. */
export const bool: ElementCodec = {
  encode: (value) => {
    if (typeof value !== "boolean") return undefined
    const bytes = SmallMemory.allocate(1)
    bytes[0] = value ? 1 : 0
    return new TypedTensor("BOOL", shape, bytes)
  },
  decode: (tensor) => {
    const { datatype, bytes } = tensor
    return datatype === "BOOL" && isOne(tensor) && bytes.length === 1 ? bytes[0] !== 0 : undefined
  },
}

/** One of these labels, by its index. */
export const label = (names: ReadonlyArray<string>): ElementCodec => {
  const indexes = scalar("INT32")
  return {
    encode: (value) => {
      const index = typeof value === "string" ? names.indexOf(value) : -1
      return index < 0 ? undefined : indexes?.encode(index)
    },
    decode: (tensor) => {
      const index = indexes?.decode(tensor)
      return typeof index === "number" ? names[index] : undefined
    },
  }
}
