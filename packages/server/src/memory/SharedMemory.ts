/**
 * Shared memory regions that clients register by name, and then use in requests in place of tensor bytes. This module
 * has the interface, and the default implementation, which refuses registration. SystemSharedMemory.ts implements the
 * regions, and RegionReference.ts of core the references to them.
 */
import { Result } from "effect"
import { type InferenceError, RegionNotFound, Unsupported } from "@nereid/core/Errors"
import type { SharedBytes } from "@nereid/core/internal/tensor/SharedBytes"
import type { WireRequest, WireResponse } from "@nereid/core/internal/wire/WireRequest"

/** A registered region. */
export interface Region {
  readonly name: string
  /** Name of the shared memory object for `shm_open`. */
  readonly key: string
  /** Bytes from the start of the object to the start of the region. */
  readonly offset: number
  readonly byteSize: number
}

/** The regions that one request uses, held for it until it is released. */
export interface Loan {
  /** The request, with the bytes of its inputs read, or shared. */
  readonly request: WireRequest
  /** The memory for outputs, by their names; undefined unless it is shared. */
  readonly targets: ReadonlyMap<string, SharedBytes> | undefined
  /** Writes outputs into the regions that the request names for them; they stay in the response as references. */
  readonly write: (response: WireResponse) => Result.Result<WireResponse, InferenceError>
  /** To be called once the request is answered or taken back; again, it does nothing. */
  readonly release: () => void
}

export interface SharedMemory {
  /** Error if registration is not allowed, otherwise undefined. */
  readonly refusal: InferenceError | undefined
  /** One region, or all where `name` is empty. */
  readonly status: (name: string) => Result.Result<ReadonlyArray<Region>, InferenceError>
  readonly register: (region: Region) => Result.Result<void, InferenceError>
  /** Forgets one region, or all where `name` is empty; those in use once nothing uses them any more. */
  readonly unregister: (name: string) => Result.Result<void, InferenceError>
  /** `isShared`: whether the model maps large tensors itself. */
  readonly borrow: (request: WireRequest, isShared?: boolean) => Result.Result<Loan, InferenceError>
}

/** Whether a request uses regions. */
export const isUsedBy = (request: WireRequest): boolean =>
  request.inputs.some(({ region }) => region !== undefined) ||
  request.outputs.some(({ region }) => region !== undefined)

export const notFound = (name: string) =>
  Result.fail(new RegionNotFound({ message: `Unable to find system shared memory region: '${name}'` }))

const refusal = new Unsupported({
  message: "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable.",
})

const refused = () => Result.fail(refusal)

/** Implementation for a server that does not allow shared memory. */
export const disabled: SharedMemory = {
  refusal,
  status: (name) => (name === "" ? Result.succeed([]) : notFound(name)),
  register: refused,
  unregister: refused,
  borrow: refused,
}
