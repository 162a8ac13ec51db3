/**
 * The contract of a model, as data for callers: its name, its tensors and whether it is batched. Sources are a
 * declaration, an ONNX file, a repository or a live server. Queues and instances are not part of it.
 */
import { Result } from "effect"
import type { GrpcCode } from "../grpc/GrpcCode.ts"
import { required, type RequiredSequence, type Sequencing } from "../model/Sequencing.ts"
import type { Signature, TensorForm, TensorSpec } from "../tensor/TensorSpec.ts"
import { isDynamic } from "../tensor/TensorSpec.ts"
import type { JsonDocument } from "./JsonType.ts"

/** A tensor as its source declares it, which may exceed what the protocol can express. */
export interface ContractTensor extends Pick<TensorSpec, "name" | "labels" | "default"> {
  /** A datatype of the protocol, or another name, such as `COMPLEX64`. */
  readonly datatype: string
  /** Dims without the batch dimension; undefined if the source does not declare the shape. */
  readonly dims: TensorSpec["dims"] | undefined
  /** Whether a request may omit the input; undefined if the source does not declare it. */
  readonly optional: boolean | undefined
  /** File of the labels, if the source names it without its content. */
  readonly labelFile?: string | undefined
  /** Form of the value in code; undefined if the source does not declare it. */
  readonly form?: TensorForm | undefined
  /** Type of the JSON value, for the form `json`; undefined if the source does not declare it. */
  readonly json?: JsonDocument | undefined
}

/** A parameter of requests or responses. */
export interface ContractParameter {
  readonly name: string
  /** As it is on the wire. */
  readonly json: JsonDocument
  readonly optional: boolean
  /** Default of an optional parameter. 64-bit integers, NaN and the infinities are strings. */
  readonly default?: string | number | boolean
}

export interface ContractError {
  readonly tag: string
  readonly http: number
  readonly grpc: keyof typeof GrpcCode
  /** An object with the tag and the fields. */
  readonly json: JsonDocument
}

/** The sequences of a model whose requests all belong to one. */
export interface ContractSequence {
  /** Microseconds after its last response at which a sequence expires; undefined for never, or if unknown. */
  readonly maxIdle?: number | undefined
}

export interface Contract {
  readonly name: string
  readonly inputs: ReadonlyArray<ContractTensor>
  readonly outputs: ReadonlyArray<ContractTensor>
  /**
   * Maximum rows of a batch; 0 for a model without a batch dimension. Undefined if the source does not declare it; dims
   * are complete then, and the first may be the batch dimension.
   */
  readonly maxBatchSize: number | undefined
  /** Whether a request has any number of responses; undefined if the source does not declare it. */
  readonly decoupled?: boolean | undefined
  /** Declared parameters of requests; undefined if the source does not declare them. */
  readonly parameters?: ReadonlyArray<ContractParameter> | undefined
  /** The same of responses. */
  readonly responseParameters?: ReadonlyArray<ContractParameter> | undefined
  /** Declared errors; undefined if the source does not declare them. */
  readonly errors?: ReadonlyArray<ContractError> | undefined
  /** Whether all requests belong to sequences; undefined if the source does not declare it, or if they may. */
  readonly sequence?: ContractSequence | false | undefined
}

export const fromDefinition = (definition: {
  readonly name: string
  readonly signature: Signature
  readonly maxBatchSize: number
  readonly sequencing?: Sequencing | undefined
}): Contract => ({
  name: definition.name,
  ...definition.signature,
  maxBatchSize: definition.maxBatchSize,
  sequence: sequenceOf(definition.sequencing),
})

const sequenceOf = (sequencing: Sequencing | undefined): Contract["sequence"] => {
  const sequence = required(sequencing)
  if (sequence !== undefined) return { maxIdle: idleMicros(sequence) }
  return sequencing === undefined ? false : undefined
}

/** Microseconds; undefined for never. Longer times than 100 years count as never. */
export const idleMicros = ({ maxIdle }: RequiredSequence): number | undefined => {
  const micros = Math.ceil(maxIdle / 1e3)
  return micros < maxIdleMicros ? micros : undefined
}

export const maxIdleMicros = 100 * 366 * 24 * 3600 * 1e6

/** Whether the first dimension of every tensor may be that of the batch. */
export const canBatch = ({ inputs, outputs }: Contract): boolean => unbatched([...inputs, ...outputs]) === undefined

/**
 * The contract with this maximum batch size, if its source does not declare one; or the reason why it cannot be
 * batched.
 */
export const batched = (contract: Contract, maxBatchSize: number): Result.Result<Contract, string> => {
  if (contract.maxBatchSize !== undefined) return Result.succeed(contract)
  if (maxBatchSize === 0) return Result.succeed({ ...contract, maxBatchSize })
  const { name, inputs, outputs } = contract
  const fixed = unbatched([...inputs, ...outputs])
  if (fixed !== undefined) {
    return Result.fail(
      `model '${name}' has no batch dimension for a maximum of ${maxBatchSize} rows: the first dimension of '${fixed.name}' ` +
        "is fixed",
    )
  }
  const row = (tensor: ContractTensor) => ({ ...tensor, dims: tensor.dims?.slice(1) })
  return Result.succeed({ ...contract, inputs: inputs.map(row), outputs: outputs.map(row), maxBatchSize })
}

/** The first tensor with a known shape that does not begin with a batch dimension. */
const unbatched = (tensors: ReadonlyArray<ContractTensor>): ContractTensor | undefined =>
  tensors.find(({ dims }) => dims !== undefined && !(dims[0] !== undefined && isDynamic(dims[0])))
