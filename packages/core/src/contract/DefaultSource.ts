/** The default of an optional input as code of a contract file. */
import { type DataType, isDataType } from "../tensor/DataType.ts"
import type { TensorForm } from "../tensor/TensorSpec.ts"
import type { ContractTensor } from "./Contract.ts"
import * as DefaultDocument from "./DefaultDocument.ts"
import * as JsonLiteral from "./JsonLiteral.ts"
import { call, type Expression, quoted, word } from "./SourceText.ts"

/** The form that a contract file declares. */
export type FieldForm = TensorForm | "label"

/** Undefined for a default that the field cannot have. The server fills it in then. */
export const make = (
  { datatype, labels = [], json, default: preset }: ContractTensor,
  form: FieldForm,
): Expression | undefined => {
  if (preset === undefined || !isDataType(datatype)) return undefined
  const elements = DefaultDocument.elements(datatype, preset) ?? []
  const [first] = elements
  switch (form) {
    case "label": {
      const label = typeof first === "number" ? labels[first] : undefined
      return label === undefined ? undefined : word(quoted(label))
    }
    case "json": {
      const text = first instanceof Uint8Array ? DefaultDocument.textOf(first) : undefined
      return text === undefined || json === undefined ? undefined : JsonLiteral.fromText(text, json)
    }
    case "tensor":
      return "row" in preset ? tensor(datatype, preset.row.shape, elements) : element(first)
    default:
      return element(first)
  }
}

type Value = NonNullable<ReturnType<typeof DefaultDocument.elements>>[number]

/** Bytes are text. */
const element = (value: Value | undefined): Expression | undefined => {
  if (!(value instanceof Uint8Array)) return value === undefined ? undefined : word(number(value))
  const text = DefaultDocument.textOf(value)
  return text === undefined ? undefined : word(quoted(text))
}

const number = (value: boolean | number | bigint): string => (typeof value === "bigint" ? `${value}n` : String(value))

const tensor = (
  datatype: DataType,
  shape: ReadonlyArray<number>,
  values: ReadonlyArray<Value>,
): Expression | undefined => {
  const elements = values.map((value) => {
    if (typeof value === "boolean") return word(String(Number(value)))
    const one = element(value)
    return one !== undefined && value instanceof Uint8Array ? call("new TextEncoder().encode", one) : one
  })
  if (!elements.every((one) => one !== undefined)) return undefined
  const extents: Expression = { kind: "list", elements: shape.map((extent) => word(String(extent))) }
  const array = arrays[datatype]
  const data: Expression = array === undefined ? { kind: "list", elements } : call(`${array}.of`, ...elements)
  return call("Tensor.make", word(quoted(datatype)), extents, data)
}

/** Undefined for a list of bytes. */
const arrays: { readonly [D in DataType]: string | undefined } = {
  BOOL: "Uint8Array",
  UINT8: "Uint8Array",
  UINT16: "Uint16Array",
  UINT32: "Uint32Array",
  UINT64: "BigUint64Array",
  INT8: "Int8Array",
  INT16: "Int16Array",
  INT32: "Int32Array",
  INT64: "BigInt64Array",
  FP16: "Float16Array",
  FP32: "Float32Array",
  FP64: "Float64Array",
  BF16: "Uint16Array",
  BYTES: undefined,
}
