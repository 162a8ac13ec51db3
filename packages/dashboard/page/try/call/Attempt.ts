/** One request to a model, as the form has made it. */
import type { Field, Model } from "../../api/Model.ts"
import type { Json } from "../json/Json.ts"
import type { Tensor } from "../tensor/Tensor.ts"

export interface Input {
  readonly field: Field
  readonly tensor: Tensor
  /** Of an element of BYTES that is a file. */
  readonly fileName?: string
}

export type ParameterValue = string | number | bigint | boolean

export interface Attempt {
  readonly model: Model
  /** Without the optional inputs that are left out. */
  readonly inputs: ReadonlyArray<Input>
  readonly id: string
  /** With `timeout`, in microseconds, and `priority`. */
  readonly parameters: Readonly<Record<string, ParameterValue>>
  /** Place in a sequence; absent for a model without sequences. */
  readonly sequence?: SequenceStep | undefined
}

export interface SequenceStep {
  readonly id: bigint | string
  readonly isStart: boolean
  readonly isEnd: boolean
}

/** The shape on the wire: with a batch dimension of 1 if the model has one. */
export const wireShape = ({ maxBatchSize }: Model, shape: ReadonlyArray<number>): ReadonlyArray<number> =>
  maxBatchSize > 0 ? [1, ...shape] : shape

export const pathOf = ({ name, version }: Model, verb: string): string => {
  const model = `/v2/models/${encodeURIComponent(name)}`
  return `${version === "" ? model : `${model}/versions/${encodeURIComponent(version)}`}/${verb}`
}

/** Parameters as JSON, with those of the sequence. */
export const parametersOf = ({
  parameters,
  sequence,
}: Pick<Attempt, "parameters" | "sequence">): { readonly [name: string]: Json } =>
  sequence === undefined
    ? parameters
    : {
        ...parameters,
        sequence_id: sequence.id,
        ...(sequence.isStart && { sequence_start: true }),
        ...(sequence.isEnd && { sequence_end: true }),
      }
