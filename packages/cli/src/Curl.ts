/**
 * Builds a curl command with a valid request for a model: ones and short texts. Small inputs are JSON. Large inputs,
 * and datatypes that JSON cannot represent, are zeros in the binary tensor extension. The request for a decoupled model
 * is a stream, always in JSON.
 */
import { byteWidth } from "@nereid/core/internal/tensor/DataType"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import { isDynamic, type TensorSpec } from "@nereid/core/internal/tensor/TensorSpec"

const maxElementsAsJson = 16

/** None for a decoupled model with an input that is too large for a line of JSON, or that JSON cannot carry. */
export const curl = (model: RunningModel, url: string): string | undefined => {
  const specs = model.description.signature.inputs.filter((spec) => !spec.optional)
  const target = `${url}/v2/models/${encodeURIComponent(model.description.name)}`
  return model.calls.decoupled ? generate(specs, target) : infer(specs, target, model.description.maxBatchSize > 0)
}

const generate = (specs: ReadonlyArray<TensorSpec>, target: string): string | undefined => {
  // `parameters` is a word of the extension, whose members are inputs, too.
  if (specs.some((spec) => needsBinary(spec) || spec.name === "parameters")) return undefined
  const members = specs.map((spec) => {
    const data = elements(spec)
    return [spec.name, data.length === 1 ? data[0] : data]
  })
  return `curl -sN ${target}/generate_stream -d ${quote(JSON.stringify(Object.fromEntries(members)))}`
}

const infer = (specs: ReadonlyArray<TensorSpec>, target: string, batched: boolean): string => {
  const inputs = specs.map((spec) => input(spec, batched))
  const body = JSON.stringify({ inputs: inputs.map(({ json }) => json) })
  const zeros = inputs.reduce((bytes, { zeros }) => bytes + zeros, 0)
  return zeros === 0
    ? `curl -s ${target}/infer -d ${quote(body)}`
    : `{ printf %s ${quote(body)}; head -c ${zeros} /dev/zero; } | ` +
        `curl -s ${target}/infer -H 'Inference-Header-Content-Length: ${Buffer.byteLength(body)}' --data-binary @-`
}

interface Input {
  readonly json: Readonly<Record<string, unknown>>
  /** Bytes of binary data that follow the JSON. */
  readonly zeros: number
}

const input = (spec: TensorSpec, batched: boolean): Input => {
  const { name, datatype } = spec
  const shape = batched ? [1, ...extents(spec)] : extents(spec)
  if (needsBinary(spec)) {
    const zeros = count(spec) * (byteWidth(datatype) ?? 0)
    return { json: { name, shape, datatype, parameters: { binary_data_size: zeros } }, zeros }
  }
  return { json: { name, shape, datatype, data: elements(spec) }, zeros: 0 }
}

const extents = ({ dims }: TensorSpec): ReadonlyArray<number> =>
  dims.map((dim) => (typeof dim === "string" || isDynamic(dim) ? 1 : dim))

const count = (spec: TensorSpec): number => extents(spec).reduce((product, extent) => product * extent, 1)

const needsBinary = (spec: TensorSpec): boolean => {
  if (spec.datatype === "FP16" || spec.datatype === "BF16") return true
  // Strings are always JSON, because zeros are not valid strings.
  return spec.datatype !== "BYTES" && count(spec) > maxElementsAsJson
}

const elements = (spec: TensorSpec): ReadonlyArray<unknown> => Array.from({ length: count(spec) }, () => element(spec))

const element = ({ datatype, labels, example }: TensorSpec): unknown => {
  if (labels !== undefined) return 0
  if (datatype === "BYTES") return example?.() ?? "text"
  return datatype === "BOOL" ? true : 1
}

/** Quotes text for a POSIX shell. */
const quote = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`
