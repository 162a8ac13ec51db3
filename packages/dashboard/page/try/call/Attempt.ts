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
}

/** The shape on the wire: with a batch dimension of 1 if the model has one. */
export const wireShape = ({ maxBatchSize }: Model, shape: ReadonlyArray<number>): ReadonlyArray<number> =>
  maxBatchSize > 0 ? [1, ...shape] : shape

export const pathOf = ({ name, version }: Model, verb: string): string => {
  const model = `/v2/models/${encodeURIComponent(name)}`
  return `${version === "" ? model : `${model}/versions/${encodeURIComponent(version)}`}/${verb}`
}

/** Parameters as JSON. */
export const parametersOf = ({ parameters }: Attempt): { readonly [name: string]: Json } => parameters
