/** Encodes requests of `/infer`: as JSON, or with tensors as bytes behind it where JSON cannot have them. */
import type { Field, Model } from "../../api/Model.ts"
import { type Json, write } from "../json/Json.ts"
import { hasJson, kindOf } from "../tensor/Datatype.ts"
import { elementCount, isList, numberText, type Tensor, textOf, toBytes } from "../tensor/Tensor.ts"
import { type Attempt, type Input, parametersOf, wireShape } from "./Attempt.ts"

export interface InferRequest {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Blob
}

/** Larger tensors are sent as bytes. */
export const maxJsonElements = 1_024

/** Whether JSON can have a tensor, and is not much larger than its bytes. */
export const isJsonTensor = ({ datatype, data }: Tensor): boolean => {
  if (isList(data)) {
    return (
      data.length <= maxJsonElements &&
      data.every((element) => element.length <= 65_536 && textOf(element) !== undefined)
    )
  }
  if (!hasJson(datatype) || data.length > maxJsonElements) return false
  return kindOf(datatype) !== "float" || data.every((value: number | bigint) => Number.isFinite(value))
}

/** The elements as JSON. */
export const jsonOf = ({ datatype, data }: Tensor): string => {
  if (isList(data)) return `[${data.map((element) => JSON.stringify(textOf(element) ?? "")).join(",")}]`
  if (datatype === "BOOL")
    return `[${Array.from<number | bigint, string>(data, (value) => String(Boolean(value))).join(",")}]`
  return `[${Array.from<number | bigint, string>(data, (value) => numberText(datatype, value)).join(",")}]`
}

/** Whether an output is asked for as bytes: JSON may lack its values, or round them. */
export const isBinaryOutput = ({ datatype, dims, form }: Field): boolean => {
  const kind = kindOf(datatype)
  if (kind === "bytes") return form === "tensor"
  if (kind === "float" || kind === "long") return true
  return dims.some((dim) => typeof dim === "string" || dim < 0) || elementCount(dims.map(Number)) > maxJsonElements
}

/** The JSON of a request, whose bytes are those of the inputs that are no JSON, in order. */
export const headerOf = (
  attempt: Attempt,
  isJson: (input: Input) => boolean,
  isBinary: (output: Field) => boolean,
): string => {
  const { model, inputs, id } = attempt
  const tensors = inputs.map((input) => {
    const { name, datatype } = input.field
    const data = isJson(input)
      ? `"data":${jsonOf(input.tensor)}`
      : `"parameters":{"binary_data_size":${toBytes(input.tensor).length}}`
    const shape = wireShape(model, input.tensor.shape).join(",")
    return `{"name":${JSON.stringify(name)},"datatype":"${datatype}","shape":[${shape}],${data}}`
  })
  const members = [
    ...(id === "" ? [] : [`"id":${JSON.stringify(id)}`]),
    ...parametersMember(parametersOf(attempt)),
    `"inputs":[${tensors.join(",")}]`,
    ...outputsMember(model, isBinary),
  ]
  return `{${members.join(",")}}`
}

const parametersMember = (parameters: { readonly [name: string]: Json }): ReadonlyArray<string> =>
  Object.keys(parameters).length === 0 ? [] : [`"parameters":${write(parameters)}`]

/** Outputs are named only if one is asked for as bytes. */
const outputsMember = ({ outputs }: Model, isBinary: (output: Field) => boolean): ReadonlyArray<string> => {
  if (!outputs.some(isBinary)) return []
  const requested = outputs.map((output) => ({
    name: output.name,
    ...(isBinary(output) && { parameters: { binary_data: true } }),
  }))
  return [`"outputs":${write(requested)}`]
}

export const make = (attempt: Attempt): InferRequest => {
  const isJson = (input: Input) => isJsonTensor(input.tensor)
  const header = headerOf(attempt, isJson, isBinaryOutput)
  const binary = attempt.inputs.filter((input) => !isJson(input))
  if (binary.length === 0) return { headers: { "content-type": "application/json" }, body: header }
  const bytes = new TextEncoder().encode(header)
  return {
    headers: { "content-type": "application/octet-stream", "inference-header-content-length": String(bytes.length) },
    body: new Blob([bytes, ...binary.map(({ tensor }) => toBytes(tensor))]),
  }
}
