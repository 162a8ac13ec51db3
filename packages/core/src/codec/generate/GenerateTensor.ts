/**
 * A tensor of the generate extension. The JSON has only the elements, as one value or as an array; the signature
 * determines datatype and shape. Other tensors declare both (JsonDecoder.ts).
 */
import { InvalidRequest } from "../../error/InferenceError.ts"
import { maxDepth, readElements, tooDeep } from "../json/JsonElements.ts"
import { hasJsonForm, noJsonForm } from "../json/JsonDataType.ts"
import type { JsonReader } from "../json/JsonReader.ts"
import { matches, type TensorSpec, wireDims } from "../../tensor/TensorSpec.ts"
import { elementCount } from "../../tensor/TypedTensor.ts"
import type { WireTensor } from "../../wire/WireRequest.ts"

/** Reads the value at the reader's position. `batched`: the model has a batch dimension before its dims. */
export const readTensor = (reader: JsonReader, { name, datatype, dims }: TensorSpec, batched: boolean): WireTensor => {
  const start = reader.position
  const layout = measure(reader)
  if (!hasJsonForm(datatype)) throw noJsonForm("input", name, datatype)
  const shape = layout && complete(batched ? [-1, ...wireDims(dims)] : wireDims(dims), layout)
  if (shape === undefined) {
    throw new InvalidRequest({ message: `The schema can not convert input '${name}' to tensor with proper shape` })
  }
  reader.position = start
  return { name, datatype, shape, bytes: readElements(reader, datatype, elementCount(shape), name) }
}

interface Layout {
  /** Extents of the arrays, from the outermost; empty for a single value. */
  readonly extents: ReadonlyArray<number>
  /** Elements in all. */
  readonly count: number
}

/** Walks over a value; undefined if its arrays are not equally long, or not equally deep. */
const measure = (reader: JsonReader): Layout | undefined => {
  const extents: Array<number> = []
  let depthOfElements: number | undefined
  let count = 0
  let even = true
  const value = (depth: number): void => {
    const kind = reader.kind()
    if (kind !== "array") {
      count += 1
      depthOfElements ??= depth
      if (depth !== depthOfElements) even = false
      return kind === "number" ? reader.skipNumber(true) : reader.skip(true)
    }
    if (depth + 1 >= maxDepth) throw tooDeep()
    const first = extents.length === depth
    if (first) extents.push(0)
    let extent = 0
    reader.array(() => {
      extent += 1
      value(depth + 1)
    })
    if (first) extents[depth] = extent
    else if (extents[depth] !== extent) even = false
  }
  value(0)
  return even && (depthOfElements ?? extents.length) === extents.length ? { extents, count } : undefined
}

/**
 * The shape of elements with this layout under `dims`; undefined if there is none. Nested arrays are the innermost
 * axes, and the axes before them are 1. For a flat array or a single value, the innermost variable dim takes all
 * elements that the fixed dims leave. Other variable dims are 1.
 */
const complete = (dims: ReadonlyArray<number>, { extents, count }: Layout): ReadonlyArray<number> | undefined => {
  if (extents.length > 1) {
    if (extents.length > dims.length) return undefined
    const shape = [...dims.slice(extents.length).map(() => 1), ...extents]
    return matches(dims, shape) ? shape : undefined
  }
  const fixed = dims.reduce((product, dim) => (dim === -1 ? product : product * dim), 1)
  const rest = fixed === 0 && count === 0 ? 1 : count / fixed
  const varying = dims.lastIndexOf(-1)
  if (!Number.isInteger(rest) || (varying < 0 && rest !== 1)) return undefined
  return dims.map((dim, axis) => (dim !== -1 ? dim : axis === varying ? rest : 1))
}
