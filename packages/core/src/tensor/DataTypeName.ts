/**
 * Other names of datatypes: in Triton's configurations, in numpy and in PyTorch. They are accepted in declarations;
 * everywhere else a datatype has its name of DataType.ts.
 */
import { all, type DataType } from "./DataType.ts"

const others = {
  TYPE_BOOL: "BOOL",
  TYPE_UINT8: "UINT8",
  TYPE_UINT16: "UINT16",
  TYPE_UINT32: "UINT32",
  TYPE_UINT64: "UINT64",
  TYPE_INT8: "INT8",
  TYPE_INT16: "INT16",
  TYPE_INT32: "INT32",
  TYPE_INT64: "INT64",
  TYPE_FP16: "FP16",
  TYPE_FP32: "FP32",
  TYPE_FP64: "FP64",
  TYPE_BF16: "BF16",
  TYPE_STRING: "BYTES",
  bool: "BOOL",
  bool_: "BOOL",
  uint8: "UINT8",
  uint16: "UINT16",
  uint32: "UINT32",
  uint64: "UINT64",
  int8: "INT8",
  int16: "INT16",
  int32: "INT32",
  int64: "INT64",
  float16: "FP16",
  half: "FP16",
  float32: "FP32",
  single: "FP32",
  float64: "FP64",
  double: "FP64",
  bfloat16: "BF16",
  bytes: "BYTES",
  object: "BYTES",
  object_: "BYTES",
} as const satisfies { readonly [name: string]: DataType }

/** A datatype by any of its names. */
export type DataTypeName = DataType | keyof typeof others

/** The datatype of this name. */
export type DataTypeNamed<N extends DataTypeName> = N extends DataType
  ? N
  : N extends keyof typeof others
    ? (typeof others)[N]
    : never

/** @throws TypeError for a name that none has */
export const datatype = <N extends DataTypeName>(name: N): DataTypeNamed<N> => {
  const found = all.find((one) => one === name) ?? new Map<string, DataType>(Object.entries(others)).get(name)
  if (found === undefined)
    throw new TypeError(`${JSON.stringify(name)} is not a datatype; expected one of ${all.join(", ")}.`)
  // The same table, by its type.
  return found as DataTypeNamed<N>
}
