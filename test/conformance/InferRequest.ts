/**
 * An inference request and its outcome as no protocol has them: what a case says once, for HTTP and gRPC alike. How one
 * is put on a wire is in HttpEncoding.ts and GrpcEncoding.ts. None of this is the product's own code: a mistake there
 * must not be able to hide here.
 */
import type { Tag } from "@nereid/core/Errors"

/** A BF16 element is a number too. Text is UTF-8; other bytes stand as they are, and have no JSON form. */
export type Element = number | bigint | boolean | string | Uint8Array

export interface Tensor {
  readonly name: string
  /** One of the protocol's, or anything else. */
  readonly datatype: string
  readonly shape: ReadonlyArray<number | bigint>
  /** Row-major, as many as the case wants: the shape may be wrong. */
  readonly elements: ReadonlyArray<Element>
  /** Replaces the elements if they are deliberately invalid. */
  readonly bytes?: Uint8Array
}

export type Parameter = boolean | bigint | number | string

export interface Parameters {
  readonly [name: string]: Parameter
}

export interface Output {
  readonly name: string
  readonly parameters?: Parameters
}

export interface InferRequest {
  readonly model: string
  readonly version?: string
  readonly id?: string
  readonly parameters?: Parameters
  readonly inputs: ReadonlyArray<Tensor>
  readonly outputs?: ReadonlyArray<Output>
}

export interface ExpectedOutputs {
  /** In this order. */
  readonly outputs: ReadonlyArray<Tensor>
  /** Default 1. */
  readonly version?: string
}

export interface ExpectedError {
  /** From which the HTTP status and the gRPC code follow (core's InferenceError.ts). */
  readonly tag: Tag
  /** Whole, or a pattern for what is not the protocol's own text. */
  readonly error: string | RegExp
}

export type Outcome = ExpectedOutputs | ExpectedError

/** How a request travels. */
export const encodings = [
  "HTTP JSON",
  "HTTP JSON nested",
  "HTTP binary",
  "HTTP mixed",
  "HTTP raw body",
  "gRPC raw",
  "gRPC contents",
  "gRPC stream",
] as const

export type Encoding = (typeof encodings)[number]

/** Inputs and outputs as JSON, and all of gRPC; what is more differs in how a tensor is written only. */
export const binaryEncodings: ReadonlyArray<Encoding> = ["HTTP binary", "gRPC raw", "gRPC stream"]

export const tensor = (
  name: string,
  datatype: string,
  shape: ReadonlyArray<number | bigint>,
  elements: ReadonlyArray<Element>,
): Tensor => ({ name, datatype, shape, elements })

/** A tensor of these bytes, whether its shape needs them or not. */
export const rawTensor = (
  name: string,
  datatype: string,
  shape: ReadonlyArray<number | bigint>,
  bytes: Uint8Array,
): Tensor => ({ name, datatype, shape, elements: [], bytes })

/** Whether JSON has a form for all of its inputs' elements. */
const isJson = ({ datatype, elements, bytes }: Tensor): boolean =>
  bytes === undefined &&
  datatype !== "FP16" &&
  datatype !== "BF16" &&
  !elements.some((element) => element instanceof Uint8Array)

/** Whether gRPC's typed contents have a field for its elements. */
const isTyped = ({ datatype, bytes }: Tensor): boolean =>
  bytes === undefined && datatype !== "FP16" && datatype !== "BF16"

/** The encodings in which the request says the same; a raw body is not among them, as it has no room for most of it. */
export const possible = ({ inputs }: InferRequest): ReadonlyArray<Encoding> =>
  encodings.filter((encoding) => {
    switch (encoding) {
      case "HTTP JSON":
      case "HTTP JSON nested":
        return inputs.every(isJson)
      case "gRPC contents":
        return inputs.every(isTyped)
      case "HTTP mixed":
        return inputs.length > 1 && inputs.slice(1).every(isJson)
      case "HTTP raw body":
        return false
      default:
        return true
    }
  })
