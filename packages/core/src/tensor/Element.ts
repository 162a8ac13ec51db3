/** One element of a tensor as a plain value, for options such as padding and fill values. */
import { type DataType, type FixedDataType, view } from "./DataType.ts"

/** bigint for integers of 64 bits, boolean for BOOL, text for BYTES; number for the rest, of BF16 its 16 bits. */
export type Element<D extends DataType> = D extends "BOOL"
  ? boolean
  : D extends "INT64" | "UINT64"
    ? bigint
    : D extends "BYTES"
      ? string
      : number

/**
 * Its bytes, of BYTES without their length; undefined for what the datatype cannot hold. Without a value: 0, or no
 * bytes.
 */
export const elementBytes = (datatype: DataType, value?: Element<DataType>): Uint8Array | undefined => {
  if (datatype === "BYTES") {
    return typeof value === "string" || value === undefined ? new TextEncoder().encode(value) : undefined
  }
  const one = view(datatype, new ArrayBuffer(8), 0, 1)
  if (value !== undefined && !write(datatype, one, 0, value)) return undefined
  return new Uint8Array(one.buffer, 0, one.BYTES_PER_ELEMENT)
}

/**
 * Writes the element and reads it back, because typed arrays wrap or truncate integers. Returns whether the datatype
 * can hold it.
 */
export const write = (
  datatype: FixedDataType,
  into: ReturnType<typeof view>,
  index: number,
  value: unknown,
): boolean => {
  if (datatype === "BOOL") return typeof value === "boolean" && Reflect.set(into, index, Number(value))
  if (typeof value !== (into instanceof BigInt64Array || into instanceof BigUint64Array ? "bigint" : "number"))
    return false
  Reflect.set(into, index, value)
  return /^(FP|BF)/.test(datatype) || Reflect.get(into, index) === value
}
