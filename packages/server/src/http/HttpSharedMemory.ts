/**
 * Routes of the shared memory extension, for regions of system memory and of CUDA memory. SharedMemory.ts defines
 * regions.
 */
import { Result } from "effect"
import * as RegionDocument from "@nereid/core/internal/codec/json/RegionDocument"
import type { InferenceError } from "@nereid/core/Errors"
import { collect } from "./HttpBody.ts"
import type { HttpCall } from "./HttpCall.ts"
import type { Route } from "./HttpRoute.ts"
import type { OutgoingResponse } from "../port/HttpExchange.ts"
import { sendEmpty, sendError, sendResult } from "../port/HttpReply.ts"
import * as CudaSharedMemory from "../memory/CudaSharedMemory.ts"
import type { Region, SharedMemory } from "../memory/SharedMemory.ts"

/** Name of the region, in place of a model's name in other paths. */
const region = "(?:/region/(?<name>[^/]+))?"

/** `maxInputSize`: the largest body of a registration, in bytes. */
export const routes = (memory: SharedMemory, maxInputSize: number): ReadonlyArray<Route> => [
  {
    method: "GET",
    api: "shared-memory",
    path: new RegExp(`^/v2/systemsharedmemory${region}/status$`),
    handle: ({ response, model: { name } }) =>
      sendResult(
        response,
        Result.map(memory.status(name), (regions) => regions.map(regionStatus)),
      ),
  },
  {
    method: "POST",
    api: "shared-memory",
    path: new RegExp(`^/v2/systemsharedmemory${region}/register$`),
    handle: (call) => register(memory, call, maxInputSize),
  },
  {
    method: "POST",
    api: "shared-memory",
    path: new RegExp(`^/v2/systemsharedmemory${region}/unregister$`),
    handle: ({ response, model: { name } }) => sendDone(response, memory.unregister(name)),
  },
  {
    method: "GET",
    api: "shared-memory",
    path: new RegExp(`^/v2/cudasharedmemory${region}/status$`),
    handle: ({ response, model: { name } }) => sendResult(response, CudaSharedMemory.status(name)),
  },
  {
    method: "POST",
    api: "shared-memory",
    path: new RegExp(`^/v2/cudasharedmemory${region}/register$`),
    handle: ({ response, model: { name } }) => sendDone(response, CudaSharedMemory.register(name)),
  },
  {
    method: "POST",
    api: "shared-memory",
    // No regions can be registered, so this always succeeds.
    path: new RegExp(`^/v2/cudasharedmemory${region}/unregister$`),
    handle: ({ response }) => sendEmpty(response, 200),
  },
]

/** Registers the region that the path names. */
const register = (memory: SharedMemory, call: HttpCall, maxInputSize: number): void => {
  const { response, guard, model: region } = call
  // Before the body is read: its errors do not matter then.
  if (memory.refusal !== undefined) return sendError(response, memory.refusal)
  collect(call, maxInputSize, (body) =>
    guard(() => {
      const registered = Result.flatMap(RegionDocument.read(body), (document) =>
        memory.register({ name: region.name, ...document }),
      )
      sendDone(response, registered)
    }),
  )
}

const sendDone = (response: OutgoingResponse, result: Result.Result<void, InferenceError>): void => {
  if (Result.isFailure(result)) sendError(response, result.failure)
  else sendEmpty(response, 200)
}

const regionStatus = ({ name, key, offset, byteSize }: Region) => ({ name, key, offset, byte_size: byteSize })
