/** The datatypes of the v2 protocol: sizes, ranges and typed arrays. */

export type Numbers =
  | Uint8Array
  | Int8Array
  | Uint16Array
  | Int16Array
  | Uint32Array
  | Int32Array
  | BigUint64Array
  | BigInt64Array
  | Float32Array
  | Float64Array

export type Kind = "float" | "integer" | "long" | "boolean" | "bytes"

interface Row {
  readonly kind: Kind
  /** Bytes of an element on the wire; 0 for BYTES. */
  readonly width: number
  /** Inclusive range of integers. */
  readonly range?: readonly [minimum: bigint, maximum: bigint]
  /** An array of zeros. FP16 and BF16 are numbers of 32 bits here. */
  readonly array: (length: number) => Numbers
}

const signed = (bits: bigint): readonly [bigint, bigint] => [-(2n ** (bits - 1n)), 2n ** (bits - 1n) - 1n]
const unsigned = (bits: bigint): readonly [bigint, bigint] => [0n, 2n ** bits - 1n]

const table: Readonly<Record<string, Row>> = {
  BOOL: { kind: "boolean", width: 1, array: (length) => new Uint8Array(length) },
  UINT8: { kind: "integer", width: 1, range: unsigned(8n), array: (length) => new Uint8Array(length) },
  UINT16: { kind: "integer", width: 2, range: unsigned(16n), array: (length) => new Uint16Array(length) },
  UINT32: { kind: "integer", width: 4, range: unsigned(32n), array: (length) => new Uint32Array(length) },
  UINT64: { kind: "long", width: 8, range: unsigned(64n), array: (length) => new BigUint64Array(length) },
  INT8: { kind: "integer", width: 1, range: signed(8n), array: (length) => new Int8Array(length) },
  INT16: { kind: "integer", width: 2, range: signed(16n), array: (length) => new Int16Array(length) },
  INT32: { kind: "integer", width: 4, range: signed(32n), array: (length) => new Int32Array(length) },
  INT64: { kind: "long", width: 8, range: signed(64n), array: (length) => new BigInt64Array(length) },
  FP16: { kind: "float", width: 2, array: (length) => new Float32Array(length) },
  BF16: { kind: "float", width: 2, array: (length) => new Float32Array(length) },
  FP32: { kind: "float", width: 4, array: (length) => new Float32Array(length) },
  FP64: { kind: "float", width: 8, array: (length) => new Float64Array(length) },
}

/** A datatype that the page does not know is handled as bytes. */
const bytes: Row = { kind: "bytes", width: 0, array: (length) => new Uint8Array(length) }

export const rowOf = (datatype: string): Row => (Object.hasOwn(table, datatype) ? table[datatype] : undefined) ?? bytes

export const kindOf = (datatype: string): Kind => rowOf(datatype).kind

export const isNumeric = (datatype: string): boolean => kindOf(datatype) !== "bytes"

/** Whether JSON of the protocol has numbers of this datatype. */
export const hasJson = (datatype: string): boolean => datatype !== "FP16" && datatype !== "BF16"
