/**
 * Tensors as nested arrays, one level for each axis, like numpy's `tolist` and `array`. For samples, tests and small
 * outputs: each element becomes a separate value, unlike in the typed array `tensor.data`.
 */
import * as DataType from "./DataType.ts"
import { type Element, write } from "./Element.ts"
import { elementCount, encodeElements, type Shape, TypedTensor } from "./TypedTensor.ts"

export type Nested<V> = V | ReadonlyArray<Nested<V>>

/** Elements that an array may have: for BYTES, texts or bytes. */
type Given<D extends DataType.DataType> = D extends "BYTES" ? string | Uint8Array : Element<D>

/** Bytes stay bytes: whether they are text is not known here. */
type Shown<D extends DataType.DataType> = D extends "BYTES" ? Uint8Array : Element<D>

type ShapeOf<N> = N extends ReadonlyArray<infer Inner> ? readonly [N["length"], ...ShapeOf<Inner>] : readonly []

type NestedIn<V, S extends Shape> = S extends readonly []
  ? V
  : S extends readonly [number, ...infer Rest extends Shape]
    ? ReadonlyArray<NestedIn<V, Rest>>
    : Nested<V>

/**
 * A tensor whose shape is that of the arrays: `fromNested("FP32", [[1, 2, 3], [4, 5, 6]])` is FP32[2,3]. Elements are
 * boolean (BOOL), bigint (64-bit), text or bytes (BYTES), number (others; of BF16 its 16 bits).
 * @throws RangeError if arrays of one level differ in length, or the datatype cannot hold an element
 */
export const fromNested = <D extends DataType.DataType, const N extends Nested<Given<D>>>(
  datatype: D,
  nested: N,
): TypedTensor<D, ShapeOf<N>> => {
  const shape: Array<number> = []
  for (let inner: Nested<unknown> | undefined = nested; isArray(inner); inner = inner[0]) shape.push(inner.length)
  const values: Array<unknown> = []
  flatten(nested, shape, 0, values)
  // The loop above has read it off the arrays.
  return new TypedTensor(datatype, shape as Shape as ShapeOf<N>, toBytes(datatype, values))
}

/** The elements in arrays of the tensor's shape; one element alone for the shape of a scalar, []. */
export const toNested = <D extends DataType.DataType, S extends Shape>({
  datatype,
  shape,
  data,
}: TypedTensor<D, S>): NestedIn<Shown<D>, S> => {
  let level: ReadonlyArray<Nested<unknown>> = Array.from<unknown>(data)
  if (datatype === "BOOL") level = level.map((value) => value !== 0)
  for (let axis = shape.length - 1; axis > 0; axis--) {
    const inner = level
    const extent = shape[axis] ?? 0
    const count = elementCount(shape.slice(0, axis))
    level = Array.from({ length: count }, (_, index) => inner.slice(index * extent, (index + 1) * extent))
  }
  // As many levels as there are axes, which the type counts.
  return (shape.length === 0 ? level[0] : level) as NestedIn<Shown<D>, S>
}

const isArray = (nested: Nested<unknown>): nested is ReadonlyArray<Nested<unknown>> => Array.isArray(nested)

const flatten = (nested: Nested<unknown>, shape: Shape, axis: number, into: Array<unknown>): void => {
  const extent = shape[axis]
  if (isArray(nested) ? nested.length !== extent : extent !== undefined) {
    const found = isArray(nested) ? `an array of ${nested.length}` : "an element"
    throw new RangeError(`Arrays of the shape [${shape}] have one extent for each axis, but axis ${axis} has ${found}.`)
  }
  if (!isArray(nested)) into.push(nested)
  else for (const inner of nested) flatten(inner, shape, axis + 1, into)
}

const toBytes = (datatype: DataType.DataType, values: ReadonlyArray<unknown>): Uint8Array => {
  const refuse = (value: unknown): never => {
    throw new RangeError(
      `${datatype} cannot hold ${typeof value === "string" ? JSON.stringify(value) : String(value)}.`,
    )
  }
  if (datatype === "BYTES") {
    const text = new TextEncoder()
    return encodeElements(
      values.map((value) =>
        value instanceof Uint8Array ? value : typeof value === "string" ? text.encode(value) : refuse(value),
      ),
    )
  }
  const bytes = new Uint8Array(values.length * (DataType.byteWidth(datatype) ?? 1))
  const view = DataType.view(datatype, bytes.buffer, 0, values.length)
  for (const [index, value] of values.entries()) if (!write(datatype, view, index, value)) refuse(value)
  return bytes
}
