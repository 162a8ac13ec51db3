/** A model as the page shows it: what its metadata, its declaration and its configuration say together. */
import type { DeclaredError, DeclaredParameter, DeclaredTensor, JsonSchema, ModelConfig } from "./Protocol.ts"
import type { ModelMetadata, TensorMetadata } from "./Protocol.ts"

export type Form = "tensor" | "scalar" | "label" | "text" | "json"

export interface Field {
  readonly name: string
  readonly datatype: string
  /** Without the batch dimension. A variable dimension is -1, or its name. */
  readonly dims: ReadonlyArray<number | string>
  readonly form: Form
  readonly optional: boolean
  /** Of `label`: names of the values 0, 1, …; of a tensor: names of its classes. Empty if there are none. */
  readonly labels: ReadonlyArray<string>
  /** Of `json`: what its text must be. */
  readonly schema: JsonSchema | undefined
  readonly default: unknown
}

/** The sequences of a model whose requests must belong to one. */
export interface Sequences {
  /** Seconds after its last response at which a sequence expires; undefined for never. */
  readonly maxIdle: number | undefined
  /** Whether the model has texts as ids, and no numbers. */
  readonly hasTextIds: boolean
}

export interface Model {
  readonly name: string
  readonly version: string
  readonly platform: string
  readonly inputs: ReadonlyArray<Field>
  readonly outputs: ReadonlyArray<Field>
  readonly parameters: ReadonlyArray<DeclaredParameter>
  readonly errors: ReadonlyArray<DeclaredError>
  /** 0 for a model without a batch dimension. */
  readonly maxBatchSize: number
  /** Whether a request has any number of responses. */
  readonly decoupled: boolean
  /** Undefined if a request need not belong to a sequence. */
  readonly sequences: Sequences | undefined
  readonly config: ModelConfig
}

export const make = (version: string, metadata: ModelMetadata, config: ModelConfig): Model => {
  const { contract = {} } = metadata
  const maxBatchSize = config.max_batch_size
  const optional = new Set(config.input.filter((input) => input.optional === true).map(({ name }) => name))
  const fields = (tensors: ReadonlyArray<TensorMetadata>, declared: ReadonlyArray<DeclaredTensor> = []) =>
    tensors.map((tensor) => {
      const entry = declared.find(({ name }) => name === tensor.name)
      return fieldOf(tensor, entry, maxBatchSize > 0, optional.has(tensor.name))
    })
  return {
    name: metadata.name,
    version,
    platform: metadata.platform,
    inputs: fields(metadata.inputs, contract.inputs),
    outputs: fields(metadata.outputs, contract.outputs),
    parameters: contract.parameters ?? [],
    errors: contract.errors ?? [],
    maxBatchSize,
    decoupled: config.model_transaction_policy?.decoupled === true,
    sequences: contract.sequence && sequencesOf(contract.sequence, config),
    config,
  }
}

const sequencesOf = (
  { max_idle_microseconds: micros }: { readonly max_idle_microseconds?: number },
  { sequence_batching: batching }: ModelConfig,
): Sequences => {
  const controls = (batching?.control_input ?? []).flatMap(({ control }) => control)
  return {
    maxIdle: micros === undefined ? undefined : micros / 1e6,
    hasTextIds: controls.some(({ kind, data_type: type }) => isId(kind) && type === "TYPE_STRING"),
  }
}

const isId = (kind: string | undefined): boolean => kind === "CONTROL_SEQUENCE_CORRID"

const fieldOf = (
  { name, datatype, shape }: TensorMetadata,
  entry: DeclaredTensor | undefined,
  isBatched: boolean,
  optional: boolean,
): Field => {
  const dims = entry?.dims ?? (isBatched ? shape.slice(1) : shape)
  const labels = entry?.labels ?? []
  const schema = entry?.schema
  return {
    name,
    datatype,
    dims,
    form: formOf(datatype, dims, entry),
    optional,
    labels,
    schema,
    default: entry?.default,
  }
}

const formOf = (datatype: string, dims: Field["dims"], entry: DeclaredTensor | undefined): Form => {
  const isSingle = dims.length === 1 && dims[0] === 1
  if (!isSingle) return "tensor"
  if (entry?.form === "json") return "json"
  if (entry?.form === "utf8") return "text"
  if (datatype === "INT32" && entry?.labels !== undefined && entry.labels.length > 0) return "label"
  return datatype === "BYTES" || entry?.form === "tensor" ? "tensor" : "scalar"
}

/** `FP32[n, 28]?`. */
export const typeOf = ({ datatype, dims, optional }: Pick<Field, "datatype" | "dims" | "optional">): string =>
  `${datatype}[${dims.map((dim) => (dim === -1 ? "?" : dim)).join(", ")}]${optional ? "?" : ""}`
