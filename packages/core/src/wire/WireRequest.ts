/**
 * An inference request as a codec reads it: names and texts as received, tensors as bytes. Nothing is validated yet;
 * Validation.ts turns it into a Request.
 */
import type { Tracer } from "effect"
import type { Parameters, Trace } from "../request/Request.ts"
import type { RegionReference } from "./RegionReference.ts"

export interface WireTensor {
  readonly name: string
  readonly datatype: string
  readonly shape: ReadonlyArray<number>
  /** Row-major, little endian; BYTES with length prefixes. A view on the received body where that is possible. */
  readonly bytes: Uint8Array
  /** Where the bytes are instead, then `bytes` is empty; absent for a tensor that travels itself. */
  readonly region?: RegionReference
}

export interface RequestedOutput {
  readonly name: string
  /** Whether HTTP sends it as binary data; undefined if the request leaves that to its default. */
  readonly binary: boolean | undefined
  /** How many of its highest values are sent in its place (Classification.ts); absent for the tensor itself. */
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
}

/** A message of a response stream: a response, or an error and the response to which it belongs. */
export interface StreamResponse {
  /** Empty if nothing has. */
  readonly error: string
  readonly response: WireResponse
}
