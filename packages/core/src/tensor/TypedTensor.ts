/**
 * A tensor value: datatype, shape and bytes in row-major order, little endian, as on the wire. Slices along axis 0 are
 * views. Bytes are copied only if a typed array requires another alignment. The declaration of a tensor is in Field.ts,
 * its place in a signature in TensorSpec.ts. TextTensor.ts has a tensor without bytes until they are read.
 */
import * as DataType from "./DataType.ts"
import * as SharedBytes from "./SharedBytes.ts"
import * as SmallMemory from "./SmallMemory.ts"

/** Extents of a tensor, the outermost first. */
export type Shape = ReadonlyArray<number>

/** A tensor: its datatype, shape and bytes. `data` has the elements as a typed array, and those of BYTES as a list. */
export class TypedTensor<D extends DataType.DataType = DataType.DataType, S extends Shape = Shape> {
  readonly datatype: D
  readonly shape: S
  /** BYTES: every element is preceded by its length as 4 bytes, little endian, as in the binary tensor extension. */
  declare readonly bytes: Uint8Array
  #data: DataType.ElementArrays[D] | undefined

  constructor(datatype: D, shape: S, bytes: Uint8Array) {
    this.datatype = datatype
    this.shape = shape
    this.bytes = bytes
  }

  /** The elements as a typed array: a view on `bytes` where their alignment allows it, else a copy made once. */
  get data(): DataType.ElementArrays[D] {
    return (this.#data ??= elements(this.datatype, this.bytes))
  }
}

/** A tensor of any datatype. Checking `datatype` narrows the type of `data`: `if (x.datatype === "FP32") …`. */
export type AnyTensor = { readonly [D in DataType.DataType]: TypedTensor<D> }[DataType.DataType]

/** The number of elements of a shape; 1 for a scalar's empty shape. */
export const elementCount = (shape: Shape): number => {
  let count = 1
  for (const extent of shape) count *= extent
  return count
}

/**
 * Makes a tensor from elements. The shape's product must be the number of elements. Typed arrays are used without a
 * copy.
 * @throws RangeError if the number of elements differs from the shape's
 */
export const make = <D extends DataType.DataType, const S extends Shape>(
  datatype: D,
  shape: S,
  data: DataType.ElementArrays[D],
): TypedTensor<D, S> => {
  const bytes = toBytes(data)
  if (data.length !== elementCount(shape)) {
    throw new RangeError(
      `A tensor of shape [${shape}] has ${elementCount(shape)} elements, but ${data.length} were given.`,
    )
  }
  return new TypedTensor(datatype, shape, bytes)
}

/**
 * Changes the shape without a copy.
 * @throws RangeError if the number of elements differs
 */
export const reshape = <D extends DataType.DataType, const S extends Shape>(
  tensor: TypedTensor<D>,
  shape: S,
): TypedTensor<D, S> => {
  if (elementCount(shape) !== elementCount(tensor.shape)) {
    throw new RangeError(`A tensor of shape [${tensor.shape}] cannot be reshaped to [${shape}].`)
  }
  return new TypedTensor(tensor.datatype, shape, tensor.bytes)
}

/** The mismatch between the size of a tensor's bytes and its shape; undefined if they match. */
export const sizeProblem = (tensor: TypedTensor): string | undefined => {
  const { datatype, shape } = tensor
  const count = elementCount(shape)
  const width = DataType.byteWidth(datatype)
  if (width !== undefined) {
    const length = SharedBytes.lengthOf(tensor)
    return count * width === length
      ? undefined
      : `expected ${count * width} bytes for ${datatype}[${shape}], got ${length}`
  }
  const { bytes } = tensor
  let elements = 0
  let offset = 0
  while (offset < bytes.length) {
    const left = bytes.length - offset - 4
    const length = left < 0 ? 0 : elementLength(bytes, offset)
    if (left < length) {
      return `element ${elements} needs ${left < 0 ? 4 : length} bytes, but ${left < 0 ? left + 4 : left} are left`
    }
    offset += 4 + length
    elements += 1
  }
  return elements === count ? undefined : `expected ${count} elements, got ${elements}`
}

/** Rows `start` to `end` (exclusive) along axis 0; a view. */
export const slice = <D extends DataType.DataType>(
  tensor: TypedTensor<D>,
  start: number,
  end: number,
): TypedTensor<D> => {
  const [extent = 1, ...rest] = tensor.shape
  const shape = [end - start, ...rest]
  const width = DataType.byteWidth(tensor.datatype)
  const perRow = elementCount(rest)
  if (width !== undefined) {
    const row = perRow * width
    return new TypedTensor(tensor.datatype, shape, tensor.bytes.subarray(start * row, end * row))
  }
  const from = skipElements(tensor.bytes, 0, start * perRow)
  const to = end === extent ? tensor.bytes.length : skipElements(tensor.bytes, from, (end - start) * perRow)
  return new TypedTensor(tensor.datatype, shape, tensor.bytes.subarray(from, to))
}

/** Splits the tensor along axis 0 into views with these numbers of rows. */
export const split = <D extends DataType.DataType>(
  tensor: TypedTensor<D>,
  rows: ReadonlyArray<number>,
): ReadonlyArray<TypedTensor<D>> => {
  const rest = tensor.shape.slice(1)
  const perRow = elementCount(rest)
  const width = DataType.byteWidth(tensor.datatype)
  const { buffer, byteOffset } = tensor.bytes
  let shape = tensor.shape
  let offset = 0
  return rows.map((count) => {
    const from = offset
    const elements = count * perRow
    offset = width === undefined ? skipElements(tensor.bytes, from, elements) : from + elements * width
    if (count !== shape[0]) shape = [count, ...rest]
    return new TypedTensor(tensor.datatype, shape, new Uint8Array(buffer, byteOffset + from, offset - from))
  })
}

/**
 * Concatenates the tensors along axis 0: one copy, or none for a single tensor.
 * @throws RangeError if they differ in datatype or in further dims
 */
export const concat = <D extends DataType.DataType>(tensors: readonly [TypedTensor<D>, ...Array<TypedTensor<D>>]) => {
  const [first] = tensors
  if (tensors.length === 1) return first
  let rows = 0
  let length = 0
  for (const tensor of tensors) {
    if (tensor.datatype !== first.datatype || !sameRow(tensor.shape, first.shape)) {
      const [one, other] = [first, tensor].map(({ datatype, shape }) => `${datatype}[${shape}]`)
      throw new RangeError(`Tensors of ${one} and ${other} cannot be joined along axis 0.`)
    }
    rows += tensor.shape[0] ?? 1
    length += tensor.bytes.length
  }
  const bytes = SmallMemory.allocate(length)
  let offset = 0
  for (const tensor of tensors) {
    bytes.set(tensor.bytes, offset)
    offset += tensor.bytes.length
  }
  return new TypedTensor(first.datatype, [rows, ...first.shape.slice(1)], bytes)
}

/** Whether two shapes agree in everything but axis 0. */
export const sameRow = (one: Shape, other: Shape): boolean => {
  if (one === other) return true
  if (one.length !== other.length) return false
  for (let axis = 1; axis < one.length; axis++) if (one[axis] !== other[axis]) return false
  return true
}

/** BYTES elements with their length prefixes, as `bytes` of a BYTES tensor holds them. */
export const encodeElements = (data: ReadonlyArray<Uint8Array>): Uint8Array => {
  let length = 0
  for (const element of data) length += 4 + element.length
  const bytes = SmallMemory.allocate(length)
  const view = new DataView(bytes.buffer, bytes.byteOffset)
  let offset = 0
  for (const element of data) {
    view.setUint32(offset, element.length, true)
    bytes.set(element, offset + 4)
    offset += 4 + element.length
  }
  return bytes
}

/** The number of bytes in the element of BYTES whose length is at this offset. */
export const elementLength = (bytes: Uint8Array, offset: number): number => {
  let length = 0
  for (let index = 3; index >= 0; index--) length = (length << 8) | (bytes[offset + index] ?? 0)
  return length >>> 0
}

/** The offset after `count` length-prefixed elements. The bytes must contain that many; this was checked on arrival. */
const skipElements = (bytes: Uint8Array, from: number, count: number): number => {
  let offset = from
  for (let index = 0; index < count; index++) offset += 4 + elementLength(bytes, offset)
  return offset
}

const decodeElements = (bytes: Uint8Array): ReadonlyArray<Uint8Array> => {
  const data: Array<Uint8Array> = []
  for (let offset = 0; offset < bytes.length;) {
    const end = offset + 4 + elementLength(bytes, offset)
    data.push(bytes.subarray(offset + 4, end))
    offset = end
  }
  return data
}

const elements = <D extends DataType.DataType>(datatype: D, bytes: Uint8Array): DataType.ElementArrays[D] => {
  const fixed: DataType.DataType = datatype
  if (fixed === "BYTES") return decodeElements(bytes) as DataType.ElementArrays[D]
  const width = DataType.byteWidth(fixed) ?? 1
  const aligned = bytes.byteOffset % width === 0 ? bytes : SmallMemory.copy(bytes)
  return DataType.view(
    fixed,
    aligned.buffer,
    aligned.byteOffset,
    aligned.byteLength / width,
  ) as DataType.ElementArrays[D]
}

const toBytes = (data: DataType.ElementArrays[DataType.DataType]): Uint8Array =>
  ArrayBuffer.isView(data) ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength) : encodeElements(data)
