/** A neutral request as the HTTP port takes it. */
import { bytesOf, contentOf, jsonOf } from "./Elements.ts"
import type { Encoding, InferRequest, Output, Parameter, Parameters, Tensor } from "./InferRequest.ts"

export interface HttpRequest {
  readonly method?: string
  /** Default the path of nothing. */
  readonly path: string
  readonly headers?: { readonly [name: string]: string }
  /** Its length is announced, where the headers do not announce one. */
  readonly body?: string | Uint8Array
}

export type HttpEncoding = Extract<Encoding, `HTTP ${string}`>

export const encode = (request: InferRequest, encoding: HttpEncoding): HttpRequest => {
  const version = request.version === undefined ? "" : `/versions/${encodeURIComponent(request.version)}`
  const path = `/v2/models/${encodeURIComponent(request.model)}${version}/infer`
  if (encoding === "HTTP raw body") {
    const [input] = request.inputs
    if (input === undefined) throw new TypeError("A raw body is an input")
    const body = input.datatype === "BYTES" ? Buffer.concat(input.elements.map(contentOf)) : bytesOf(input)
    return { method: "POST", path, headers: { "inference-header-content-length": "0" }, body }
  }
  const binary = request.inputs.map(
    (_, index) => encoding === "HTTP binary" || (encoding === "HTTP mixed" && index === 0),
  )
  const document = Buffer.from(documentOf(request, encoding, binary))
  const blobs = request.inputs.filter((_, index) => binary[index] === true).map(bytesOf)
  const isBinary = encoding === "HTTP binary" || encoding === "HTTP mixed"
  const headers: HttpRequest["headers"] = isBinary ? { "inference-header-content-length": String(document.length) } : {}
  return { method: "POST", path, headers, body: Buffer.concat([document, ...blobs]) }
}

const documentOf = (request: InferRequest, encoding: HttpEncoding, binary: ReadonlyArray<boolean>): string => {
  const { id, inputs, outputs } = request
  const parameters =
    encoding === "HTTP binary" ? { ...request.parameters, binary_data_output: true } : request.parameters
  const members = [
    ...(id === undefined ? [] : [`"id":${JSON.stringify(id)}`]),
    ...(parameters === undefined ? [] : [`"parameters":${parametersOf(parameters)}`]),
    `"inputs":[${inputs.map((input, index) => inputOf(input, encoding, binary[index] === true)).join()}]`,
    ...(outputs === undefined
      ? []
      : [
          `"outputs":[${outputs.map((output, index) => outputOf(output, encoding === "HTTP mixed" && index === 0)).join()}]`,
        ]),
  ]
  return `{${members.join()}}`
}

const inputOf = (input: Tensor, encoding: HttpEncoding, binary: boolean): string => {
  const head = `{"name":${JSON.stringify(input.name)},"shape":[${input.shape.join()}],"datatype":${JSON.stringify(input.datatype)}`
  if (binary) return `${head},"parameters":{"binary_data_size":${bytesOf(input).length}}}`
  const elements = input.elements.map(jsonOf)
  return `${head},"data":${encoding === "HTTP JSON nested" ? nested(elements, input.shape.map(Number)) : `[${elements.join()}]`}}`
}

/** The elements in arrays of the shape; flat where they do not fill it. */
const nested = (elements: ReadonlyArray<string>, shape: ReadonlyArray<number>): string => {
  const count = shape.reduce((product, extent) => product * extent, 1)
  const [extent = 1, ...rest] = shape
  if (rest.length === 0 || count !== elements.length || extent === 0) return `[${elements.join()}]`
  const length = count / extent
  const rows = Array.from({ length: extent }, (_, row) =>
    nested(elements.slice(row * length, (row + 1) * length), rest),
  )
  return `[${rows.join()}]`
}

const outputOf = ({ name, parameters }: Output, binary: boolean): string => {
  const all = binary ? { ...parameters, binary_data: true } : parameters
  return `{"name":${JSON.stringify(name)}${all === undefined ? "" : `,"parameters":${parametersOf(all)}`}}`
}

const parametersOf = (parameters: Parameters): string =>
  `{${Object.entries(parameters)
    .map(([name, value]) => `${JSON.stringify(name)}:${parameterOf(value)}`)
    .join()}}`

/** A double keeps its point, or it would be an integer. */
const parameterOf = (value: Parameter): string => {
  if (typeof value === "string") return JSON.stringify(value)
  return typeof value === "number" && Number.isInteger(value) ? value.toFixed(1) : String(value)
}
