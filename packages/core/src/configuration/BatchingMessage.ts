/**
 * Converts the queue and batching settings of the protocol's configuration to the engine's options, with defaults for
 * unset fields. Checks only what the engine requires; the error messages are Triton's.
 */
import { Duration, Result } from "effect"
import {
  BatchInput_Kind,
  DataType,
  type ModelConfig,
  type ModelDynamicBatching,
  type ModelQueuePolicy,
  ModelQueuePolicy_TimeoutAction,
} from "@nereid/protocol/model_config"
import type { BatchInputKind, BatchInputOptions, FlatOptions } from "../batch/FlatBatch.ts"
import { defaultMaxQueueSize, isPlain, plain, type Queueing, type QueuePolicy } from "../model/QueuePolicy.ts"

/**
 * The queue options; undefined if only a maximum size is set. A maximum size of 0 means the engine's default, because
 * every queue is bounded.
 */
export const queueing = (message: ModelDynamicBatching): Queueing | undefined => {
  const queueing = {
    preserveOrdering: message.preserveOrdering,
    priorityLevels: message.priorityLevels,
    defaultPriorityLevel: message.defaultPriorityLevel,
    defaultPolicy: policy(message.defaultQueuePolicy),
    policies: new Map(
      Object.entries(message.priorityQueuePolicy).map(([level, message]) => [BigInt(level), policy(message)]),
    ),
  }
  return isPlain(queueing) ? undefined : queueing
}

const policy = (message: ModelQueuePolicy | undefined): QueuePolicy => {
  if (message === undefined) return plain(defaultMaxQueueSize).defaultPolicy
  const { maxQueueSize, defaultTimeoutMicroseconds: timeout, timeoutAction, allowTimeoutOverride } = message
  return {
    maxQueueSize: maxQueueSize === 0 ? defaultMaxQueueSize : maxQueueSize,
    defaultTimeout: timeout === 0n ? Duration.infinity : Duration.micros(timeout),
    timeoutAction: timeoutAction === ModelQueuePolicy_TimeoutAction.DELAY ? "DELAY" : "REJECT",
    allowTimeoutOverride,
  }
}

/** The flat batching options; undefined if no input is ragged; or a description of the problem. */
export const flat = ({
  maxBatchSize,
  input,
  output,
  batchInput,
  batchOutput,
}: ModelConfig): Result.Result<FlatOptions | undefined, string> => {
  // Without batches, an input that may be ragged has no effect.
  const ragged = input.flatMap(({ name, allowRaggedBatch }) => (allowRaggedBatch && maxBatchSize > 0 ? [name] : []))
  if (ragged.length === 0 && batchInput.length === 0 && batchOutput.length === 0) return Result.succeed(undefined)
  if (maxBatchSize === 0) return Result.fail("batch_input and batch_output require batching: 'max_batch_size' is 0")
  const wrongSource = (subject: string, sources: ReadonlyArray<string>) => {
    if (sources.length !== 1) return `${subject} expects 1 source input, got ${sources.length}`
    return input.some(({ name }) => name === sources[0]) ? undefined : `unknown source input name '${sources[0]}'`
  }
  const batchInputs: { [name: string]: BatchInputOptions } = {}
  for (const { kind, targetName, dataType, sourceInput } of batchInput) {
    const kindName = kinds.get(kind)
    if (kindName === undefined) return Result.fail(`unknown batch input kind '${kind}'`)
    const datatype = datatypes.get(dataType)
    const wrong = wrongSource(`batch input kind '${kindName}'`, sourceInput)
    if (wrong !== undefined) return Result.fail(wrong)
    if (datatype === undefined) return Result.fail("batch input data type must be TYPE_INT32 or TYPE_FP32")
    for (const name of targetName) batchInputs[name] = { kind: kindName, datatype, source: sourceInput[0] ?? "" }
  }
  const batchOutputs: { [name: string]: string } = {}
  for (const { targetName, sourceInput } of batchOutput) {
    const wrong = wrongSource("batch output kind 'BATCH_SCATTER_WITH_INPUT_SHAPE'", sourceInput)
    if (wrong !== undefined) return Result.fail(wrong)
    for (const target of targetName) {
      if (!output.some(({ name }) => name === target)) return Result.fail(`unknown target output name '${target}'`)
      if (Object.hasOwn(batchOutputs, target)) {
        return Result.fail(`target output name '${target}' can only be specified once`)
      }
      batchOutputs[target] = sourceInput[0] ?? ""
    }
  }
  return Result.succeed({ inputs: ragged, batchInputs, batchOutputs })
}

const kinds: ReadonlyMap<BatchInput_Kind, BatchInputKind> = new Map([
  [BatchInput_Kind.BATCH_ELEMENT_COUNT, "BATCH_ELEMENT_COUNT"],
  [BatchInput_Kind.BATCH_ACCUMULATED_ELEMENT_COUNT, "BATCH_ACCUMULATED_ELEMENT_COUNT"],
  [BatchInput_Kind.BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO, "BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO"],
  [BatchInput_Kind.BATCH_MAX_ELEMENT_COUNT_AS_SHAPE, "BATCH_MAX_ELEMENT_COUNT_AS_SHAPE"],
  [BatchInput_Kind.BATCH_ITEM_SHAPE, "BATCH_ITEM_SHAPE"],
  [BatchInput_Kind.BATCH_ITEM_SHAPE_FLATTEN, "BATCH_ITEM_SHAPE_FLATTEN"],
])

const datatypes: ReadonlyMap<DataType, BatchInputOptions["datatype"]> = new Map([
  [DataType.TYPE_FP32, "FP32"],
  [DataType.TYPE_INT32, "INT32"],
])
