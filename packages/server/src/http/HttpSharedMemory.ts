/** POST …/systemsharedmemory/…/register: the body that says which object a region is in. */
import { Result } from "effect"
import * as RegionDocument from "@nereid/core/internal/codec/json/RegionDocument"
import { collect } from "./HttpBody.ts"
import type { HttpCall } from "./HttpCall.ts"
import { sendEmpty, sendError } from "../port/HttpReply.ts"
import type { SharedMemory } from "../memory/SharedMemory.ts"

/** Registers the region that the path names. */
export const register = (memory: SharedMemory, call: HttpCall, maxInputSize: number): void => {
  const { request, response, guard, model: region } = call
  // Told before what may be wrong with a body that nobody wants.
  if (memory.refusal !== undefined) return sendError(response, memory.refusal)
  collect(request, response, maxInputSize, (body) =>
    guard(() => {
      const registered = Result.flatMap(RegionDocument.read(body), (document) =>
        memory.register({ name: region.name, ...document }),
      )
      if (Result.isFailure(registered)) sendError(response, registered.failure)
      else sendEmpty(response, 200)
    }),
  )
}
