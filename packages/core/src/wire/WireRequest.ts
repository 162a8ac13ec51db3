/**
 * An inference request as a codec reads it: names and texts as received, tensors as bytes. Nothing is validated yet;
 * Validation.ts turns it into a Request.
 */
import type { Tracer } from "effect"
import type { MessageMemory } from "../request/MessageMemory.ts"
import type { Parameters, Trace } from "../request/Request.ts"
import type { SharedBytes } from "../tensor/SharedBytes.ts"
import type { RegionReference } from "./RegionReference.ts"

export interface WireTensor {
  readonly name: string
  readonly datatype: string
  readonly shape: ReadonlyArray<number>
  /**
   * Elements in row-major order, little endian; BYTES with length prefixes. A view on the received body if possible.
   */
  readonly bytes: Uint8Array
  /** Text of a BYTES tensor with one element, if the tensor holds it as text. Its `bytes` are then made on first read. */
  readonly text?: string | undefined
  /** Shared memory that holds the elements, `bytes` being empty; absent for a tensor in the message. */
  readonly region?: RegionReference
  /** The elements, `bytes` being empty, for a model that maps shared memory; absent for a tensor in this process. */
  readonly shared?: SharedBytes
}

export interface RequestedOutput {
  readonly name: string
  /** Whether HTTP sends the output as binary data; undefined for the request's default. */
  readonly binary: boolean | undefined
  /** Shared memory that the output is written to; absent for an output in the message. */
  readonly classification?: number
  /** Where it is written, to be sent without its bytes; absent for an output that travels itself. */
  readonly region?: RegionReference
}

export interface WireRequest {
  readonly modelName: string
  /** Empty for the highest version. */
  readonly modelVersion: string
  readonly id: string
  readonly parameters: Parameters
  readonly inputs: ReadonlyArray<WireTensor>
  /** Empty for all outputs. */
  readonly outputs: ReadonlyArray<RequestedOutput>
  /** As in Request. */
  readonly memory?: MessageMemory | undefined
  /** Absent for a request that is not traced. */
  readonly trace?: Trace | undefined
  /** The span of a remote caller; absent if it sent none, or without tracing. */
  readonly parent?: Tracer.AnySpan
}

/** A response for a codec to write: the requested outputs, in the requested order. */
export interface WireResponse {
  readonly modelName: string
  readonly modelVersion: string
  readonly id: string
  readonly parameters: Parameters
  readonly outputs: ReadonlyArray<WireTensor>
  /** To be called once the outputs are written or copied, so that their memory is used again; absent for most models. */
  readonly release?: (() => void) | undefined
}

/** A message of a response stream: a response, or an error and the response to which it belongs. */
export interface StreamResponse {
  /** Empty for a successful response. */
  readonly error: string
  readonly response: WireResponse
}
