/**
 * A model's contract from its server's metadata and configuration. All servers of the protocol have metadata, but only
 * some have configurations. Without a configuration, batching and optional inputs are unknown.
 */
import type { ModelMetadataResponse, ModelMetadataResponse_TensorMetadata } from "@nereid/protocol/grpc_service"
import type { ModelConfig } from "@nereid/protocol/model_config"
import { type Contract, type ContractTensor, maxIdleMicros } from "../contract/Contract.ts"

export const contract = (
  { name, inputs, outputs }: ModelMetadataResponse,
  config: ModelConfig | undefined,
): Contract => {
  const maxBatchSize = config?.maxBatchSize
  const tensor = ({
    name,
    datatype,
    shape,
  }: ModelMetadataResponse_TensorMetadata): Omit<ContractTensor, "optional"> => {
    const dims = shape.map(Number)
    return { name, datatype, dims: maxBatchSize !== undefined && maxBatchSize > 0 ? dims.slice(1) : dims }
  }
  return {
    name,
    inputs: inputs.map((input) => ({
      ...tensor(input),
      optional: config && config.input.some(({ name, optional }) => name === input.name && optional),
    })),
    outputs: outputs.map((output) => {
      const labelFile = config?.output.find(({ name }) => name === output.name)?.labelFilename
      const common = { ...tensor(output), optional: false }
      return labelFile === undefined || labelFile === "" ? common : { ...common, labelFile }
    }),
    maxBatchSize,
    decoupled: config && config.modelTransactionPolicy?.decoupled === true,
    sequence: config && sequenceOf(config),
  }
}

/** Whether requests must belong to sequences. Of an ensemble, the configuration does not say it. */
export const sequenceOf = ({ schedulingChoice: { case: kind, value } }: ModelConfig): Contract["sequence"] => {
  if (kind === "ensembleScheduling") return undefined
  if (kind !== "sequenceBatching") return false
  return value.iterativeSequence ? undefined : { maxIdle: idleOf(value.maxSequenceIdleMicroseconds) }
}

const idleOf = (micros: bigint): number | undefined => {
  const idle = micros === 0n ? defaultIdle : Number(micros)
  return idle < maxIdleMicros ? idle : undefined
}

/** Microseconds, of a configuration without a limit. */
const defaultIdle = 1_000_000
