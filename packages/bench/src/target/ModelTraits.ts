/**
 * Properties of a model that a load needs, from the server's metadata: inputs, outputs, and how requests may be
 * batched.
 */
import { isDataType, type DataType } from "@nereid/core/internal/tensor/DataType"
import type {
  ModelMetadataResponse,
  ModelMetadataResponse_TensorMetadata as TensorMetadata,
} from "@nereid/protocol/grpc_service"
import type { ModelConfig } from "@nereid/protocol/model_config"

export interface TensorTraits {
  readonly name: string
  readonly datatype: DataType
  /** Shape in the server's metadata, with the batch axis if there is one; -1 for a variable extent. */
  readonly shape: ReadonlyArray<number>
  readonly optional: boolean
}

export interface ModelTraits {
  readonly name: string
  /** Framework and format, as the server calls it. */
  readonly platform: string
  readonly inputs: ReadonlyArray<TensorTraits>
  readonly outputs: ReadonlyArray<TensorTraits>
  /** Maximum rows of a request, whose tensors then have a batch axis; 0 without batching. */
  readonly maxBatchSize: number
  /** Whether a request may have any number of replies. */
  readonly decoupled: boolean
}

/** @throws Error if a datatype is unknown */
export const make = (metadata: ModelMetadataResponse, config: ModelConfig | undefined): ModelTraits => {
  const tensor = ({ name, datatype, shape }: TensorMetadata): TensorTraits => {
    if (!isDataType(datatype)) throw new Error(`'${name}' of the model has the unknown datatype ${datatype}`)
    const optional = config?.input.some((input) => input.name === name && input.optional) ?? false
    return { name, datatype, shape: shape.map(Number), optional }
  }
  const inputs = metadata.inputs.map(tensor)
  return {
    name: metadata.name,
    platform: metadata.platform,
    inputs,
    outputs: metadata.outputs.map(tensor),
    maxBatchSize: config?.maxBatchSize ?? guessBatching(inputs),
    decoupled: config?.modelTransactionPolicy?.decoupled ?? false,
  }
}

/** Guesses batching without a configuration: a variable first axis of all inputs is the batch axis. */
const guessBatching = (inputs: ReadonlyArray<TensorTraits>): number =>
  inputs.length > 0 && inputs.every(({ shape }) => shape[0] === -1) ? Infinity : 0
