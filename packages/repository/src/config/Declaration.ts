/**
 * Converts a configuration to a model class, as if it were declared in code. Models in repositories and models in code
 * thus behave alike.
 */
import { Duration } from "effect"
import * as BatchingMessage from "@nereid/core/internal/configuration/BatchingMessage"
import { type ModelClass, Service } from "@nereid/core/internal/call/ModelClass"
import { type DataType, isDataType } from "@nereid/core/internal/tensor/DataType"
import type { Sequencing } from "@nereid/core/internal/model/Sequencing"
import * as Field from "@nereid/core/internal/model/Field"
import { isDynamic, type Signature, type TensorSpec } from "@nereid/core/internal/tensor/TensorSpec"
import { TypedTensor } from "@nereid/core/internal/tensor/TypedTensor"
import {
  DataTypeSchema,
  type ModelConfig,
  type ModelInput,
  type ModelOutput,
  type ModelSequenceBatching,
} from "@nereid/protocol/model_config"
import * as BatchGroupOrder from "./BatchGroupOrder.ts"
import * as LatencyTarget from "./LatencyTarget.ts"
import * as StartThreshold from "./StartThreshold.ts"

export type RepositoryModelClass = ModelClass<unknown, string, Field.Fields, Field.Fields>

export interface DeclaredVersion {
  readonly version: number
  readonly config: ModelConfig
  /** Labels of the classes, by output. */
  readonly labels: ReadonlyMap<string, ReadonlyArray<string>>
  readonly sequencing?: Sequencing | undefined
}

/** A version of the model, as its clients see it. */
export const make = ({ config, labels, version, sequencing }: DeclaredVersion): RepositoryModelClass => {
  const declared = Service<unknown>()(config.name, {
    inputs: fields(config.input, ({ optional }) => ({ optional })),
    outputs: fields(config.output, ({ name }) => ({ labels: labels.get(name) })),
    maxBatchSize: config.maxBatchSize,
    version,
    batching: batching(config),
  })
  const { definition } = declared
  return Object.assign(declared, {
    definition: {
      ...definition,
      sequencing,
      batching: {
        ...definition.batching,
        differing: differing(config, definition.signature),
        queueing: queueing(config),
        latencyTarget: LatencyTarget.of(config),
        startsAt: StartThreshold.read(process.env, config),
      },
    },
  })
}

/** Adds default values to inputs of a model: one row for a model that batches. */
export const withDefaults = (
  declared: RepositoryModelClass,
  values: ReadonlyMap<string, TypedTensor>,
): RepositoryModelClass => {
  const { definition } = declared
  const { signature, maxBatchSize } = definition
  const inputs = signature.inputs.map((spec) => {
    const value = spec.optional ? values.get(spec.name) : undefined
    if (value === undefined) return spec
    const own = maxBatchSize > 0 ? value.shape.slice(1) : value.shape
    const shape = spec.dims.every((dim) => !isDynamic(dim)) ? spec.dims.map(Number) : own
    return { ...spec, default: { row: new TypedTensor(value.datatype, shape, value.bytes) } }
  })
  return Object.assign(declared, { definition: { ...definition, signature: { ...signature, inputs } } })
}

const fields = <T extends ModelInput | ModelOutput>(
  tensors: ReadonlyArray<T>,
  more: (tensor: T) => { readonly optional?: boolean; readonly labels?: ReadonlyArray<string> | undefined },
): Field.Fields =>
  Object.fromEntries(
    tensors.map((tensor) => {
      const { optional = false, labels } = more(tensor)
      // Checked before: no configuration without a datatype comes here.
      const spec = { datatype: datatypeOf(tensor) ?? "FP32", dims: tensor.dims.map(Number), optional }
      return [tensor.name, Field.fromSpec(labels === undefined ? spec : { ...spec, labels })]
    }),
  )

/** The shapes of the model itself; the same object if the configuration reshapes no tensor. */
export const reshapedSignature = ({ input, output }: ModelConfig, signature: Signature): Signature =>
  [...input, ...output].every(({ reshape }) => reshape === undefined)
    ? signature
    : {
        inputs: signature.inputs.map((spec) => reshaped(spec, input)),
        outputs: signature.outputs.map((spec) => reshaped(spec, output)),
      }

/** Looked up by name, because numeric keys of an object do not keep their order. */
const reshaped = (spec: TensorSpec, tensors: ReadonlyArray<ModelInput | ModelOutput>): TensorSpec => {
  const shape = tensors.find(({ name }) => name === spec.name)?.reshape?.shape
  return shape === undefined ? spec : { ...spec, dims: shape.map(Number) }
}

/** Returns the protocol's datatype; undefined if there is none. */
export const datatypeOf = ({ dataType }: Pick<ModelInput, "dataType">): DataType | undefined => {
  const name = DataTypeSchema.value[dataType]?.name.replace(/^TYPE_/, "")
  if (name === "STRING") return "BYTES"
  return name !== undefined && isDataType(name) ? name : undefined
}

/** Levels are more than numbers can tell, and what they are with is checked already. */
const queueing = ({ schedulingChoice }: ModelConfig) =>
  schedulingChoice.case === "dynamicBatching" ? BatchingMessage.queueing(schedulingChoice.value) : undefined

const differing = ({ input, maxBatchSize }: ModelConfig, { inputs }: Signature): ReadonlySet<number> => {
  const ragged = new Set(
    input.flatMap(({ name, allowRaggedBatch }) => (allowRaggedBatch && maxBatchSize > 0 ? [name] : [])),
  )
  return new Set(inputs.flatMap(({ name }, position) => (ragged.has(name) ? [position] : [])))
}

/**
 * Batches of the strategy `oldest`; the slots of `direct` make their own. An instance ends its batches in their order,
 * which is all that `preserve_ordering` asks for.
 */
const ofSequences = ({ strategyChoice: { case: kind, value } }: ModelSequenceBatching) => ({
  maxQueueSize: maxSequenceRequests,
  ...(kind === "oldest"
    ? {
        maxQueueDelay: Duration.micros(value.maxQueueDelayMicroseconds),
        preferredBatchSizes: value.preferredBatchSize,
      }
    : {}),
})

/** Requests that wait in all sequences of a model. The protocol has no limit, which only memory would then set. */
const maxSequenceRequests = 100_000

const batching = (config: ModelConfig) => {
  const { schedulingChoice } = config
  if (schedulingChoice.case === "sequenceBatching") return ofSequences(schedulingChoice.value)
  if (schedulingChoice.case !== "dynamicBatching") return { shared: false }
  const { maxQueueDelayMicroseconds, preferredBatchSize, defaultQueuePolicy } = schedulingChoice.value
  const maxQueueSize = defaultQueuePolicy?.maxQueueSize ?? 0
  return {
    maxQueueDelay: Duration.micros(maxQueueDelayMicroseconds),
    preferredBatchSizes: preferredBatchSize,
    groupOrder: BatchGroupOrder.of(config),
    // No limit in the protocol, which only memory would then set.
    ...(maxQueueSize > 0 ? { maxQueueSize } : {}),
  }
}
