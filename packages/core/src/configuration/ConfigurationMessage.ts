/**
 * The configuration of a model in code as the protocol's message, normalized: unset fields have their defaults. A model
 * of a repository has the configuration that it was loaded with.
 */
import { create, type MessageInitShape } from "@bufbuild/protobuf"
import { Duration } from "effect"
import type { FlatBatch } from "../batch/FlatBatch.ts"
import type { GroupLimits } from "../limiter/Resource.ts"
import * as QueuePolicy from "../model/QueuePolicy.ts"
import type { ModelDescription } from "../running/ModelDescription.ts"
import type { RunningModel } from "../running/RunningModel.ts"
import { type Signature, type TensorSpec, wireDims } from "../tensor/TensorSpec.ts"
import * as SequenceBatchingMessage from "./SequenceBatchingMessage.ts"
import {
  BatchInput_Kind,
  BatchOutput_Kind,
  DataType,
  type ModelConfig,
  ModelConfigSchema,
  type ModelDynamicBatchingSchema,
  ModelInstanceGroup_Kind as Kind,
  ModelQueuePolicy_TimeoutAction,
} from "@nereid/protocol/model_config"

export const make = (model: RunningModel): ModelConfig => create(ModelConfigSchema, configuration(model))

const configuration = (model: RunningModel): MessageInitShape<typeof ModelConfigSchema> => {
  const { name, platform, maxBatchSize, signature, flat, batching, sequencing, responseCache } = model.description
  return {
    name,
    platform,
    // A platform is called `<backend>` or `<backend>_<format>`.
    backend: platform.split("_", 1)[0] ?? platform,
    versionPolicy: { policyChoice: { case: "latest", value: { numVersions: 1 } } },
    maxBatchSize,
    input: signature.inputs.map((spec, position) => ({
      ...tensor(spec),
      optional: spec.optional,
      allowRaggedBatch: flat?.inputs.has(position) === true,
    })),
    output: signature.outputs.map(tensor),
    ...(flat === undefined ? {} : ragged(flat, signature)),
    instanceGroup: model.life.instanceGroups().map(({ name, kind, count, gpus, rateLimiter }) => ({
      name,
      kind: Kind[kind],
      count,
      gpus: [...gpus],
      ...(rateLimiter === undefined ? {} : { rateLimiter: rateLimiterMessage(rateLimiter) }),
    })),
    optimization: { inputPinnedMemory: { enable: true }, outputPinnedMemory: { enable: true } },
    ...(responseCache ? { responseCache: { enable: true } } : {}),
    ...(model.calls.decoupled ? { modelTransactionPolicy: { decoupled: true } } : {}),
    schedulingChoice:
      sequencing !== undefined
        ? { case: "sequenceBatching", value: SequenceBatchingMessage.make(sequencing, batching, maxBatchSize) }
        : (maxBatchSize === 0 || !batching.shared) && batching.queueing === undefined
          ? { case: undefined }
          : { case: "dynamicBatching", value: dynamicBatching(model.description) },
  }
}

const rateLimiterMessage = ({ resources = [], priority = 0 }: GroupLimits) => ({
  resources: resources.map(({ name, count, global = false }) => ({ name, count, global })),
  priority,
})

const ragged = ({ batchInputs, batchOutputs }: FlatBatch, { inputs, outputs }: Signature) => ({
  batchInput: batchInputs.map(({ name, kind, datatype, source }) => ({
    kind: BatchInput_Kind[kind],
    targetName: [name],
    dataType: DataType[`TYPE_${datatype}`],
    sourceInput: [inputs[source]?.name ?? ""],
  })),
  batchOutput: [...batchOutputs].map(([position, source]) => ({
    targetName: [outputs[position]?.name ?? ""],
    kind: BatchOutput_Kind.BATCH_SCATTER_WITH_INPUT_SHAPE,
    sourceInput: [inputs[source]?.name ?? ""],
  })),
})

/** A tensor of the configuration. Dims exclude the batch dimension, and are empty for a scalar. */
const tensor = ({ name, datatype, dims }: TensorSpec) => ({
  name,
  dataType: datatype === "BYTES" ? DataType.TYPE_STRING : DataType[`TYPE_${datatype}`],
  dims: wireDims(dims).map(BigInt),
})

const dynamicBatching = ({
  maxBatchSize,
  batching,
}: ModelDescription): MessageInitShape<typeof ModelDynamicBatchingSchema> => {
  const { preferredBatchSizes, maxQueueDelay, maxQueueSize, queueing = QueuePolicy.plain(maxQueueSize) } = batching
  const preferred = preferredBatchSizes.length === 0 && maxBatchSize > 0 ? [maxBatchSize] : [...preferredBatchSizes]
  return {
    preferredBatchSize: preferred,
    maxQueueDelayMicroseconds: microseconds(maxQueueDelay),
    preserveOrdering: queueing.preserveOrdering,
    priorityLevels: queueing.priorityLevels,
    defaultPriorityLevel: queueing.defaultPriorityLevel,
    defaultQueuePolicy: queuePolicy(queueing.defaultPolicy),
    priorityQueuePolicy: Object.fromEntries(
      [...queueing.policies].map(([level, policy]) => [String(level), queuePolicy(policy)]),
    ),
  }
}

const queuePolicy = ({
  maxQueueSize,
  defaultTimeout,
  timeoutAction,
  allowTimeoutOverride,
}: QueuePolicy.QueuePolicy) => ({
  timeoutAction: ModelQueuePolicy_TimeoutAction[timeoutAction],
  defaultTimeoutMicroseconds: Duration.isFinite(defaultTimeout) ? microseconds(defaultTimeout) : 0n,
  allowTimeoutOverride,
  maxQueueSize: Math.min(maxQueueSize, maxUint32),
})

const maxUint32 = 2 ** 32 - 1

/** The delay in microseconds; an infinite one becomes the largest safe integer. */
const microseconds = (delay: Duration.Duration) =>
  BigInt(Math.min(Math.round(Duration.toMillis(delay) * 1000), Number.MAX_SAFE_INTEGER))
