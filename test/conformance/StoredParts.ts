/** Building blocks of the configurations and files of the repository under test. */
import { type ElementTypeName, model, node, value } from "../fixtures/onnx.ts"

type Dims = ReadonlyArray<number | string>

export interface Stored {
  readonly name: string
  readonly file: Uint8Array | string
  /** Below the directory of the model. Default `1/model.onnx`. */
  readonly at?: string
  /** Undefined for none. */
  readonly config?: string
  readonly more?: { readonly [file: string]: string | Uint8Array }
}

/** X → Y, unchanged; of any rank without `dims`. */
export const identity = (datatype: ElementTypeName, dims?: Dims): Uint8Array =>
  model({
    inputs: [value("X", datatype, dims)],
    outputs: [value("Y", datatype, dims)],
    nodes: [node("Identity", ["X"], ["Y"])],
  })

/** One session: there are many of them. */
export const one = "instance_group { count: 1 kind: KIND_CPU }\n"

export const echo = `export default { execute: (requests) => requests.map(({ inputs: { X } }) => ({ Y: X })) }`

export const io = (kind: "input" | "output", name: string, more: string) => `${kind} { name: "${name}" ${more} }\n`

export const fp32 = "data_type: TYPE_FP32 dims: 1"

/** Of X → Y in batches of up to 4. */
export const tensors = (input: string, output = fp32): string =>
  `max_batch_size: 4 ${io("input", "X", input)}${io("output", "Y", output)}`

export const script = (config: string) => ({ config, files: { "1/model.js": echo } })

/** A step: its model, and the tensors that its inputs and outputs are. */
export const step = (name: string, inputs: Record<string, string>, outputs: Record<string, string>) => {
  const map = (kind: string, pairs: Record<string, string>) =>
    Object.entries(pairs).map(([key, tensor]) => `${kind} { key: "${key}" value: "${tensor}" }`)
  return `step { model_name: "${name}" model_version: -1 ${map("input_map", inputs).join(" ")} ${map("output_map", outputs).join(" ")} }`
}
