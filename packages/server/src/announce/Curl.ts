/**
 * Builds a curl command with a valid request for a model or a route. Small inputs are JSON. Inputs that JSON cannot
 * represent, such as pictures, and large ones are in the binary tensor extension: bytes in base64, or zeros. The
 * request for a decoupled model is a stream, always in JSON.
 */
import { byteWidth } from "@nereid/core/internal/tensor/DataType"
import * as ParameterExample from "@nereid/core/internal/model/ParameterExample"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import type { TensorSpec } from "@nereid/core/internal/tensor/TensorSpec"
import { elementCount, encodeElements } from "@nereid/core/internal/tensor/TypedTensor"
import { Result } from "effect"
import type { OwnRoute } from "../openapi/RoutePaths.ts"
import { exampleBytes, exampleShape, exampleTensor } from "./ExampleTensor.ts"

const maxElementsAsJson = 16

/** Characters of a route's body; a longer one does not fit on a screen. */
const maxBodyLength = 2000

/** A sequence of one request. */
const wholeSequence = { sequence_id: 1, sequence_start: true, sequence_end: true }

/** None for a decoupled model with an input that is too large for a line of JSON, or that JSON cannot carry. */
export const modelCurl = (model: RunningModel, url: string): string | undefined => {
  const { name, signature, maxBatchSize, requiredSequence } = model.description
  const specs = signature.inputs.filter((spec) => !spec.optional)
  const target = `${url}/v2/models/${encodeURIComponent(name)}`
  const declared = ParameterExample.make(model.description.parameters)
  const parameters = requiredSequence === undefined ? declared : { ...declared, ...wholeSequence }
  return model.calls.decoupled
    ? generate(specs, parameters, target)
    : infer(specs, parameters, target, maxBatchSize > 0)
}

/** None for a model whose inputs are too large for a line. */
export const routeCurl = ({ path, sample }: OwnRoute, model: RunningModel, url: string): string | undefined => {
  const members: Record<string, unknown> = { ...ParameterExample.make(model.description.parameters) }
  for (const { spec, encode } of sample.inputs) {
    if (spec.optional) continue
    const value = encode(exampleTensor(spec))
    if (Result.isFailure(value)) return undefined
    members[spec.name] = value.success
  }
  const body = JSON.stringify(members)
  return body.length > maxBodyLength
    ? undefined
    : `curl -s${model.calls.decoupled ? "N" : ""} ${quoteUrl(url + path)} -d ${quote(body)}`
}

type Parameters = ReturnType<typeof ParameterExample.make>

const generate = (specs: ReadonlyArray<TensorSpec>, parameters: Parameters, target: string): string | undefined => {
  // `parameters` is a word of the extension, whose members are inputs, too.
  if (specs.some((spec) => needsBinary(spec) || spec.name === "parameters")) return undefined
  const members = specs.map((spec) => {
    const data = elements(spec)
    return [spec.name, data.length === 1 ? data[0] : data]
  })
  const body = JSON.stringify({ ...parameters, ...Object.fromEntries(members) })
  return `curl -sN ${target}/generate_stream -d ${quote(body)}`
}

const infer = (specs: ReadonlyArray<TensorSpec>, parameters: Parameters, target: string, batched: boolean): string => {
  const inputs = specs.map((spec) => input(spec, batched))
  const body = JSON.stringify({
    ...(Object.keys(parameters).length === 0 ? {} : { parameters }),
    inputs: inputs.map(({ json }) => json),
  })
  const commands = inputs.flatMap(({ command }) => command ?? [])
  return commands.length === 0
    ? `curl -s ${target}/infer -d ${quote(body)}`
    : `{ ${[`printf %s ${quote(body)}`, ...commands].join("; ")}; } | ` +
        `curl -s ${target}/infer -H 'Inference-Header-Content-Length: ${Buffer.byteLength(body)}' --data-binary @-`
}

interface Input {
  readonly json: Readonly<Record<string, unknown>>
  /** Shell command that writes the binary data that follows the JSON; absent without such data. */
  readonly command?: string
}

const input = (spec: TensorSpec, batched: boolean): Input => {
  const { name, datatype } = spec
  const shape = batched ? [1, ...exampleShape(spec)] : exampleShape(spec)
  if (!needsBinary(spec)) return { json: { name, shape, datatype, data: elements(spec) } }
  const binary = (size: number) => ({ name, shape, datatype, parameters: { binary_data_size: size } })
  const width = byteWidth(datatype)
  if (width === undefined) {
    const bytes = encodeElements(Array.from({ length: elementCount(shape) }, () => exampleBytes(spec)))
    return { json: binary(bytes.length), command: `printf %s ${Buffer.from(bytes).toString("base64")} | base64 -d` }
  }
  const zeros = elementCount(shape) * width
  return { json: binary(zeros), command: `head -c ${zeros} /dev/zero` }
}

const needsBinary = (spec: TensorSpec): boolean => {
  if (spec.datatype === "FP16" || spec.datatype === "BF16") return true
  // Text is always JSON, because zeros are not valid elements.
  if (spec.datatype === "BYTES") return text(spec) === undefined
  return elementCount(exampleShape(spec)) > maxElementsAsJson
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/** Returns the text of a BYTES element; undefined for bytes that are not UTF-8. */
const text = (spec: TensorSpec): string | undefined => {
  try {
    return utf8.decode(exampleBytes(spec))
  } catch {
    return undefined
  }
}

const elements = (spec: TensorSpec): ReadonlyArray<unknown> =>
  Array.from({ length: elementCount(exampleShape(spec)) }, () => element(spec))

const element = (spec: TensorSpec): unknown => {
  if (spec.labels !== undefined) return 0
  if (spec.datatype === "BYTES") return text(spec)
  return spec.datatype === "BOOL" ? true : 1
}

/** Quotes text for a POSIX shell. */
const quote = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`

/** Quotes a URL only if a shell would change it. */
const quoteUrl = (url: string) => (/^[\w./:@%+=,-]+$/.test(url) || url.startsWith("http://[") ? url : quote(url))
