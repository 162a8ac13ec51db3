/**
 * The declaration of one tensor in a signature: name, datatype and dims. Derived from a Schema's annotation (Field.ts),
 * read from an ONNX file, or taken from a server's metadata. Values are in TypedTensor.ts.
 */
import type { DataType } from "./DataType.ts"
import type { JsonSchema } from "./JsonSchema.ts"
import type { TypedTensor } from "./TypedTensor.ts"

/** A fixed extent, -1 for any, or a name: any, but the same wherever the name stands in one request. */
export type Dim = number | string

/** The shape type of a value with these dims: fixed extents stay literal, dynamic and symbolic ones become `number`. */
export type ShapeOf<Dims extends ReadonlyArray<Dim>> = {
  readonly [K in keyof Dims]: Dims[K] extends number ? (Dims[K] extends -1 ? number : Dims[K]) : number
}

/**
 * The tensor of one row, without the batch dimension; or the bytes of every element of it, of BYTES without their
 * length.
 */
export type DefaultTensor = { readonly row: TypedTensor } | { readonly element: Uint8Array }

/** The value of a tensor in code: the tensor itself, its only element, its text, or what its JSON text encodes. */
export type TensorForm = "tensor" | "scalar" | "utf8" | "json"

export interface TensorSpec {
  readonly name: string
  readonly datatype: DataType
  /** Without the batch dimension. */
  readonly dims: ReadonlyArray<Dim>
  /** An input that a request may leave out. */
  readonly optional: boolean
  /** Default of an optional input; absent if the model handles the omitted input. */
  readonly default?: DefaultTensor
  /** Names of the classes, if the tensor holds an index into them, or one score for each. */
  readonly labels?: ReadonlyArray<string> | undefined
  /** Returns a valid value for the single BYTES element, if one is known that is better than any text. */
  readonly example?: () => Uint8Array
  /** Form of the declared field, before transformations of its value; absent if only a file or server declares it. */
  readonly form?: TensorForm
  /** Schema of the encoded JSON, for the form `json`. */
  readonly jsonSchema?: () => JsonSchema
}

/** The inputs and outputs of a model, in the order of its declaration. */
export interface Signature {
  readonly inputs: ReadonlyArray<TensorSpec>
  readonly outputs: ReadonlyArray<TensorSpec>
}

export const isDynamic = (dim: Dim): boolean => typeof dim === "string" || dim === -1

/** Dims as the wire shows them: every dynamic or symbolic one is -1. */
export const wireDims = (dims: ReadonlyArray<Dim>): ReadonlyArray<number> =>
  dims.map((dim) => (typeof dim === "string" ? -1 : dim))

/** Whether `shape`, from axis `from` on, matches the dims: the same rank, and equal extents for fixed dims. */
export const matches = (dims: ReadonlyArray<Dim>, shape: ReadonlyArray<number>, from = 0): boolean => {
  if (shape.length - from !== dims.length) return false
  for (let axis = 0; axis < dims.length; axis++) {
    const dim = dims[axis]
    if (typeof dim === "number" && dim !== -1 && dim !== shape[axis + from]) return false
  }
  return true
}

/** `FP32["batch",10]`, for messages. */
export const print = (datatype: string, dims: ReadonlyArray<Dim>): string =>
  `${datatype}[${dims.map((dim) => (typeof dim === "string" ? JSON.stringify(dim) : dim)).join(",")}]`
