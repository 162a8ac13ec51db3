/**
 * The element types of the v2 protocol: wire name, bytes per element and typed array. Shapes are in TensorSpec.ts, and
 * values in TypedTensor.ts.
 */

/**
 * Type of `tensor.data`, by datatype. BF16 has no typed array: its raw 16 bits. BYTES: one array of bytes per element.
 */
export interface ElementArrays {
  BOOL: Uint8Array
  UINT8: Uint8Array
  UINT16: Uint16Array
  UINT32: Uint32Array
  UINT64: BigUint64Array
  INT8: Int8Array
  INT16: Int16Array
  INT32: Int32Array
  INT64: BigInt64Array
  FP16: Float16Array
  FP32: Float32Array
  FP64: Float64Array
  BF16: Uint16Array
  BYTES: ReadonlyArray<Uint8Array>
}

export type DataType = keyof ElementArrays

/** Datatypes whose elements all have the same width: everything but BYTES. */
export type FixedDataType = Exclude<DataType, "BYTES">

interface Row<D extends FixedDataType> {
  /** Bytes per element. */
  readonly byteWidth: 1 | 2 | 4 | 8
  /** A view of `length` elements on a buffer; `byteOffset` must be a multiple of `byteWidth`. */
  readonly view: (buffer: ArrayBufferLike, byteOffset: number, length: number) => ElementArrays[D]
}

const table: { readonly [D in FixedDataType]: Row<D> } = {
  BOOL: { byteWidth: 1, view: (buffer, offset, length) => new Uint8Array(buffer, offset, length) },
  UINT8: { byteWidth: 1, view: (buffer, offset, length) => new Uint8Array(buffer, offset, length) },
  UINT16: { byteWidth: 2, view: (buffer, offset, length) => new Uint16Array(buffer, offset, length) },
  UINT32: { byteWidth: 4, view: (buffer, offset, length) => new Uint32Array(buffer, offset, length) },
  UINT64: { byteWidth: 8, view: (buffer, offset, length) => new BigUint64Array(buffer, offset, length) },
  INT8: { byteWidth: 1, view: (buffer, offset, length) => new Int8Array(buffer, offset, length) },
  INT16: { byteWidth: 2, view: (buffer, offset, length) => new Int16Array(buffer, offset, length) },
  INT32: { byteWidth: 4, view: (buffer, offset, length) => new Int32Array(buffer, offset, length) },
  INT64: { byteWidth: 8, view: (buffer, offset, length) => new BigInt64Array(buffer, offset, length) },
  FP16: { byteWidth: 2, view: (buffer, offset, length) => float16View(buffer, offset, length) },
  FP32: { byteWidth: 4, view: (buffer, offset, length) => new Float32Array(buffer, offset, length) },
  FP64: { byteWidth: 8, view: (buffer, offset, length) => new Float64Array(buffer, offset, length) },
  BF16: { byteWidth: 2, view: (buffer, offset, length) => new Uint16Array(buffer, offset, length) },
}

/** All datatypes, in the order of the protocol's documents. */
export const all: ReadonlyArray<DataType> = [...(Object.keys(table) as Array<FixedDataType>), "BYTES"]

export const isDataType = (name: string): name is DataType => name === "BYTES" || Object.hasOwn(table, name)

/** Bytes per element; undefined for BYTES, whose elements differ in length. */
export const byteWidth = (datatype: DataType): number | undefined =>
  datatype === "BYTES" ? undefined : table[datatype].byteWidth

/** A typed view on bytes that already are aligned for the datatype. */
export const view = <D extends FixedDataType>(
  datatype: D,
  buffer: ArrayBufferLike,
  byteOffset: number,
  length: number,
): ElementArrays[D] => table[datatype].view(buffer, byteOffset, length)

/** Float16Array came with Node 24; `tensor.bytes` holds FP16 values on every Node. */
const float16View = (buffer: ArrayBufferLike, byteOffset: number, length: number): Float16Array => {
  if (typeof Float16Array === "undefined") {
    throw new TypeError("This runtime has no Float16Array, which requires Node 24: read `tensor.bytes` instead.")
  }
  return new Float16Array(buffer, byteOffset, length)
}
