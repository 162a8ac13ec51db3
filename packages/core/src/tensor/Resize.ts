/** Changes the extent of a tensor along one axis. TypedTensor.ts slices and joins rows, along axis 0. */
import { byteWidth } from "./DataType.ts"
import { elementCount, encodeElements, type TypedTensor, TypedTensor as Tensor } from "./TypedTensor.ts"

/** Cut off at the end of the axis, or filled up there with copies of one element; a view where no byte moves. */
export const resize = (tensor: TypedTensor, axis: number, extent: number, element: Uint8Array): TypedTensor => {
  const { datatype, shape, bytes } = tensor
  const before = shape[axis] ?? 1
  if (before === extent) return tensor
  const outer = elementCount(shape.slice(0, axis))
  const inner = elementCount(shape.slice(axis + 1))
  const resized = shape.with(axis, extent)
  const width = byteWidth(datatype)
  if (width === undefined) {
    return new Tensor(
      datatype,
      resized,
      encodeElements(elements(tensor.data, { outer, inner, before, extent, element })),
    )
  }
  const [from, to] = [before * inner * width, extent * inner * width]
  if (outer === 1 && to < from) return new Tensor(datatype, resized, bytes.subarray(0, to))
  const result = new Uint8Array(outer * to)
  if (to > from) tile(result, element)
  const kept = Math.min(from, to)
  for (let index = 0; index < outer; index++) {
    result.set(bytes.subarray(index * from, index * from + kept), index * to)
  }
  return new Tensor(datatype, resized, result)
}

/** Every element of `bytes`, which are zeros. */
const tile = (bytes: Uint8Array, element: Uint8Array): void => {
  if (element.every((byte) => byte === 0) || bytes.length === 0) return
  bytes.set(element)
  for (let filled = element.length; filled < bytes.length; filled *= 2) bytes.copyWithin(filled, 0, filled)
}

interface Blocks {
  readonly outer: number
  readonly inner: number
  readonly before: number
  readonly extent: number
  readonly element: Uint8Array
}

const elements = (data: TypedTensor["data"], { outer, inner, before, extent, element }: Blocks) => {
  // Only BYTES come here, whose elements are an array.
  const given = data as ReadonlyArray<Uint8Array>
  const result: Array<Uint8Array> = []
  for (let index = 0; index < outer; index++) {
    const from = index * before * inner
    for (let at = 0; at < extent * inner; at++)
      result.push(at < before * inner ? (given[from + at] ?? element) : element)
  }
  return result
}
