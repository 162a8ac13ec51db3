/**
 * Converts fields of one element without a Schema, which costs several microseconds for each value. A codec gives up on
 * everything unusual, with undefined: then the Schema of the field converts the value, or says why it is refused. The
 * fields are in Field.ts.
 */
import { Schema } from "effect"
import { byteWidth, type FixedDataType, view } from "../tensor/DataType.ts"
import * as SmallMemory from "../tensor/SmallMemory.ts"
import { TextTensor } from "../tensor/TextTensor.ts"
import { elementLength, type Shape, TypedTensor } from "../tensor/TypedTensor.ts"
import { decoder, type Field } from "./Field.ts"

export interface ElementCodec {
  /** The shape must be that of one element. */
  readonly encode: (value: unknown, shape: Shape) => TypedTensor | undefined
  readonly decode: (tensor: TypedTensor) => string | number | bigint | boolean | undefined
}

/** The codec of a text, a scalar or a label, with its checks; undefined for other fields and behind further Schemas. */
export const make = (field: Field): ElementCodec | undefined => {
  const { ast } = field
  const [link, ...others] = ast.encoding ?? []
  const tensor = link?.to.annotations?.["tensor"]
  if (tensor === undefined || others.length > 0) return undefined
  const { form, labels, datatype } = tensor
  const codec =
    labels !== undefined
      ? label(labels)
      : form === "utf8"
        ? text
        : form === "scalar" && datatype !== "BYTES"
          ? scalar(datatype)
          : undefined
  return codec && ast.checks ? checked(codec, Schema.is(field)) : codec
}

/** Leaves values that the checks refuse to the Schema, which says why. */
const checked = (codec: ElementCodec, accepts: (value: unknown) => boolean): ElementCodec => ({
  encode: (value, shape) => (accepts(value) ? codec.encode(value, shape) : undefined),
  decode: (tensor) => {
    const value = codec.decode(tensor)
    return value !== undefined && accepts(value) ? value : undefined
  },
})

const isOne = ({ shape }: TypedTensor): boolean => shape.length === 1 && shape[0] === 1

/** BYTES [1] as a text. */
const text: ElementCodec = {
  encode: (value, shape) =>
    typeof value === "string" && value.isWellFormed() ? new TextTensor(shape, value) : undefined,
  decode: (tensor) => {
    if (!isOne(tensor)) return undefined
    if (tensor instanceof TextTensor) return tensor.text
    const { datatype, bytes } = tensor
    if (datatype !== "BYTES" || elementLength(bytes, 0) !== bytes.length - 4) return undefined
    try {
      return decoder.decode(bytes.subarray(4))
    } catch {
      return undefined
    }
  },
}

/** One number of this datatype, or a boolean; undefined for FP16, for which not every Node has typed arrays. */
const scalar = (datatype: FixedDataType): ElementCodec | undefined => {
  if (datatype === "FP16") return undefined
  const width = byteWidth(datatype) ?? 1
  const isBoolean = datatype === "BOOL"
  const type = isBoolean ? "boolean" : datatype.endsWith("INT64") ? "bigint" : "number"
  const isExact = !isBoolean && !datatype.startsWith("FP")
  return {
    encode: (value, shape) => {
      if (typeof value !== type) return undefined
      const bytes = SmallMemory.allocate(width)
      const data = view(datatype, bytes.buffer, bytes.byteOffset, 1)
      Reflect.set(data, 0, isBoolean ? Number(value) : value)
      // Not exact: out of range, or with a fraction.
      if (isExact && data[0] !== value) return undefined
      return new TypedTensor(datatype, shape, bytes)
    },
    decode: (tensor) => {
      const { bytes } = tensor
      if (tensor.datatype !== datatype || !isOne(tensor) || bytes.length !== width) return undefined
      if (bytes.byteOffset % width !== 0) return undefined
      const value = view(datatype, bytes.buffer, bytes.byteOffset, 1)[0]
      return isBoolean ? value !== 0 : value
    },
  }
}

/** One of these labels, by its index. */
const label = (names: ReadonlyArray<string>): ElementCodec => {
  const indexes = scalar("INT32")
  return {
    encode: (value, shape) => {
      const index = typeof value === "string" ? names.indexOf(value) : -1
      return index < 0 ? undefined : indexes?.encode(index, shape)
    },
    decode: (tensor) => {
      const index = indexes?.decode(tensor)
      return typeof index === "number" ? names[index] : undefined
    },
  }
}
