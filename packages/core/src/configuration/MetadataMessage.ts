/**
 * A model's contract from its server's metadata and configuration. All servers of the protocol have metadata, but only
 * some have configurations. Without a configuration, batching and optional inputs are unknown.
 */
import type { ModelMetadataResponse, ModelMetadataResponse_TensorMetadata } from "@nereid/protocol/grpc_service"
import type { ModelConfig } from "@nereid/protocol/model_config"
import type { Contract, ContractTensor } from "../contract/Contract.ts"

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
  }
}
