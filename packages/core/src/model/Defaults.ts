/**
 * Fills in omitted inputs that have a default (`Tensor.optional`) before any other processing. Requests with and
 * without these inputs share batches, and handlers see no difference.
 */
import { byteWidth } from "../tensor/DataType.ts"
import type { Request } from "../request/Request.ts"
import type { DefaultTensor, Signature, TensorSpec } from "../tensor/TensorSpec.ts"
import { concat, elementCount, encodeElements, reshape, type Shape, TypedTensor } from "../tensor/TypedTensor.ts"

/** A function that fills in the defaults of a request; undefined if no input has a default. */
export const filler = ({ inputs }: Signature, batching: boolean): ((request: Request) => Request) | undefined => {
  const presets = inputs.flatMap((spec, position) =>
    spec.default === undefined ? [] : [{ position, tensor: maker(inputs, spec, spec.default, batching) }],
  )
  if (presets.length === 0) return undefined
  return (request) => {
    if (presets.every(({ position }) => request.inputs[position] !== undefined)) return request
    const filled = [...request.inputs]
    for (const { position, tensor } of presets) filled[position] ??= tensor(request)
    return { ...request, inputs: filled }
  }
}

const maker = (
  inputs: Signature["inputs"],
  { datatype, dims }: TensorSpec,
  preset: DefaultTensor,
  batching: boolean,
): ((request: Request) => TypedTensor) => {
  const first = batching ? 1 : 0
  if ("row" in preset) {
    const { row } = preset
    if (!batching) return () => row
    const one = reshape(row, [1, ...row.shape])
    return ({ rows }) => (rows === 1 ? one : concat([one, ...Array.from({ length: rows - 1 }, () => one)]))
  }
  const extents = dims.map((dim): ((request: Request) => number) => {
    if (typeof dim === "number") return () => dim
    const places = inputs.flatMap((other, position) => {
      const axis = other.default === undefined ? other.dims.indexOf(dim) : -1
      return axis < 0 ? [] : [{ position, axis: axis + first }]
    })
    return (request) => {
      for (const { position, axis } of places) {
        const extent = request.inputs[position]?.shape[axis]
        if (extent !== undefined) return extent
      }
      throw new TypeError(`Nothing has dimension "${dim}". This is a bug.`)
    }
  })
  return (request) => {
    const row = extents.map((extent) => extent(request))
    return every(datatype, batching ? [request.rows, ...row] : row, preset.element)
  }
}

/** A tensor that is the same element throughout. */
const every = (datatype: TypedTensor["datatype"], shape: Shape, element: Uint8Array): TypedTensor => {
  const count = elementCount(shape)
  const width = byteWidth(datatype)
  if (width === undefined) {
    return new TypedTensor(datatype, shape, encodeElements(Array.from({ length: count }, () => element)))
  }
  const bytes = new Uint8Array(count * width)
  for (let offset = 0; offset < bytes.length; offset += width) bytes.set(element, offset)
  return new TypedTensor(datatype, shape, bytes)
}

/** The first default with an extent that no required input determines; undefined if there is none. */
export const problem = ({ inputs }: Signature): string | undefined => {
  for (const { name, dims, default: preset } of inputs) {
    if (preset === undefined) continue
    const lost = dims.find(
      (dim) => typeof dim === "string" && !inputs.some((other) => !other.optional && other.dims.includes(dim)),
    )
    if (lost !== undefined)
      return `input "${name}" has a default, but no input that is required has dimension "${lost}"`
  }
  return undefined
}
