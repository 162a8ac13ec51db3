/**
 * A valid value for an input, for example requests: ones, the first label, a short text, or the example of the
 * input's Schema. Extents without a fixed size are 1.
 */
import { byteWidth } from "@nereid/core/internal/tensor/DataType"
import { isDynamic, type TensorSpec } from "@nereid/core/internal/tensor/TensorSpec"
import { elementCount, encodeElements, type Shape, TypedTensor } from "@nereid/core/internal/tensor/TypedTensor"
import { elementBytes } from "@nereid/core/internal/tensor/Element"

export const exampleShape = ({ dims }: TensorSpec): Shape =>
  dims.map((dim) => (typeof dim === "string" || isDynamic(dim) ? 1 : dim))

/** Returns the bytes of one BYTES element. */
export const exampleBytes = ({ example }: TensorSpec): Uint8Array => example?.() ?? new TextEncoder().encode("text")

/** Returns the value of one row. */
export const exampleTensor = (spec: TensorSpec): TypedTensor => {
  const { datatype, labels } = spec
  const shape = exampleShape(spec)
  const count = elementCount(shape)
  if (datatype === "BYTES") {
    return new TypedTensor("BYTES", shape, encodeElements(Array.from({ length: count }, () => exampleBytes(spec))))
  }
  const one = datatype === "BOOL" ? true : datatype === "INT64" || datatype === "UINT64" ? 1n : 1
  const element = labels === undefined ? elementBytes(datatype, one) : undefined
  const bytes = new Uint8Array(count * (byteWidth(datatype) ?? 1))
  if (element !== undefined) for (let index = 0; index < count; index++) bytes.set(element, index * element.length)
  return new TypedTensor(datatype, shape, bytes)
}
