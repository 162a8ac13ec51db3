/**
 * A curl line that asks a model something its signature allows: ones and short texts. Small inputs as JSON; large ones,
 * and datatypes that JSON cannot carry, as the binary tensor extension with zeros.
 */
import { byteWidth } from "@nereid/core/DataType"
import type { RunningModel } from "@nereid/core/RunningModel"
import { isDynamic, type TensorSpec } from "@nereid/core/TensorSpec"

const mostElementsAsJson = 16

export const curl = (model: RunningModel, url: string): string => {
  const specs = model.signature.inputs.filter((spec) => !spec.optional)
  const inputs = specs.map((spec) => input(spec, model.maxBatchSize > 0))
  const body = JSON.stringify({ inputs: inputs.map(({ json }) => json) })
  const target = `${url}/v2/models/${encodeURIComponent(model.name)}/infer`
  const zeros = inputs.reduce((bytes, { zeros }) => bytes + zeros, 0)
  return zeros === 0
    ? `curl -s ${target} -d ${quote(body)}`
    : `{ printf %s ${quote(body)}; head -c ${zeros} /dev/zero; } | ` +
        `curl -s ${target} -H 'Inference-Header-Content-Length: ${Buffer.byteLength(body)}' --data-binary @-`
}

interface Input {
  readonly json: Readonly<Record<string, unknown>>
  /** Bytes of binary data that follow the JSON. */
  readonly zeros: number
}

const input = (spec: TensorSpec, batched: boolean): Input => {
  const { name, datatype, dims } = spec
  const extents = dims.map((dim) => (typeof dim === "string" || isDynamic(dim) ? 1 : dim))
  const shape = batched ? [1, ...extents] : extents
  const count = extents.reduce((product, extent) => product * extent, 1)
  const width = byteWidth(datatype)
  const needsBinary = datatype === "FP16" || datatype === "BF16" || count > mostElementsAsJson
  if (width !== undefined && needsBinary) {
    const zeros = count * width
    return { json: { name, shape, datatype, parameters: { binary_data_size: zeros } }, zeros }
  }
  return { json: { name, shape, datatype, data: Array.from({ length: count }, () => element(spec)) }, zeros: 0 }
}

const element = ({ datatype, labels, example }: TensorSpec): unknown => {
  if (labels !== undefined) return 0
  if (datatype === "BYTES") return example?.() ?? "text"
  return datatype === "BOOL" ? true : 1
}

/** For a POSIX shell. */
const quote = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`
