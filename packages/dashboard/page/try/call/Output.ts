/** Decodes the outputs of responses, as tensors without a batch dimension. */
import type { Field, Model } from "../../api/Model.ts"
import { isArray, isObject, type Json, read, write } from "../json/Json.ts"
import { isNumeric } from "../tensor/Datatype.ts"
import { complete, isVariable } from "../tensor/Shape.ts"
import { fromBytes, ofNumbers, type Tensor } from "../tensor/Tensor.ts"

export interface Output {
  readonly name: string
  readonly tensor: Tensor
  /** Undefined for an output that the model has not declared. */
  readonly field: Field | undefined
}

export interface Answer {
  readonly outputs: ReadonlyArray<Output>
  readonly parameters: { readonly [name: string]: Json | undefined }
}

/** Decodes a response of `/infer`; `headerLength` is undefined for a response that is all JSON. */
export const decodeInfer = (body: Uint8Array, headerLength: number | undefined, model: Model): Answer => {
  const header = read(new TextDecoder().decode(body.subarray(0, headerLength ?? body.length)))
  if (!isObject(header) || !isArray(header["outputs"])) throw new TypeError("The response has no outputs.")
  let offset = headerLength ?? body.length
  const outputs = header["outputs"].filter(isObject).map((output) => {
    const { name, datatype, shape, data, parameters } = output
    const size = isObject(parameters) ? parameters["binary_data_size"] : undefined
    const extents = isArray(shape) ? shape.map(Number) : []
    const type = String(datatype)
    if (typeof size !== "number") return outputOf(model, String(name), fromJson(type, extents, data))
    const bytes = body.subarray(offset, offset + size)
    offset += size
    return outputOf(model, String(name), fromBytes(type, extents, bytes))
  })
  const { parameters } = header
  return { outputs, parameters: isObject(parameters) ? parameters : {} }
}

const outputOf = (model: Model, name: string, tensor: Tensor): Output => {
  const isBatched = model.maxBatchSize > 0 && tensor.shape[0] === 1
  return {
    name,
    tensor: isBatched ? { ...tensor, shape: tensor.shape.slice(1) } : tensor,
    field: model.outputs.find((field) => field.name === name),
  }
}

const fromJson = (datatype: string, shape: ReadonlyArray<number>, data: Json | undefined): Tensor => {
  const flat = flattened(data ?? [])
  if (!isNumeric(datatype)) {
    const encoder = new TextEncoder()
    return { datatype, shape, data: flat.map((element) => encoder.encode(textOf(element))) }
  }
  return ofNumbers(
    datatype,
    shape,
    flat.map((element) => (typeof element === "bigint" ? element : Number(element))),
  )
}

const flattened = (value: Json): ReadonlyArray<Json> => (isArray(value) ? value.flatMap(flattened) : [value])

const textOf = (value: Json): string => (typeof value === "string" ? value : write(value))

/** Members of a generate response that are neither outputs nor parameters. */
const known = new Set(["id", "model_name", "model_version"])

/** Decodes an event of `/generate_stream`. */
export const decodeGenerate = (event: Json, model: Model): Answer => {
  if (!isObject(event)) throw new TypeError("The response is not an object.")
  const outputs = model.outputs.flatMap((field): ReadonlyArray<Output> => {
    const value = event[field.name]
    if (value === undefined) return []
    const shape = shapeOf(flattened(value).length, field)
    return [{ name: field.name, field, tensor: fromJson(field.datatype, shape, value) }]
  })
  const names = new Set(outputs.map(({ name }) => name))
  const parameters = Object.entries(event).filter(([name]) => !known.has(name) && !names.has(name))
  return { outputs, parameters: Object.fromEntries(parameters) }
}

/** This JSON has no shapes: those of more than one variable dim are unknown. */
const shapeOf = (count: number, { dims }: Field): ReadonlyArray<number> => {
  if (dims.filter(isVariable).length > 1) return [count]
  try {
    return complete(count, dims)
  } catch {
    return [count]
  }
}
