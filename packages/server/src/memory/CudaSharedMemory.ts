/**
 * Regions of CUDA memory, as a server without GPUs has them: none, and none can be registered. Memory of the host is in
 * SharedMemory.ts.
 */
import { Result } from "effect"
import { InvalidRequest, RegionNotFound } from "@nereid/core/Errors"

/** One region, or all where `name` is empty. */
export const status = (name: string): Result.Result<ReadonlyArray<never>, RegionNotFound> =>
  name === ""
    ? Result.succeed([])
    : Result.fail(new RegionNotFound({ message: `Unable to find cuda shared memory region: '${name}'` }))

export const register = (name: string): Result.Result<never, InvalidRequest> =>
  Result.fail(
    new InvalidRequest({ message: `failed to register CUDA shared memory region: '${name}', GPUs not supported` }),
  )
