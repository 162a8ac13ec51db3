/** Memory of the calls that Connect handles, in the call's context: what its connection holds, and its response. */
import { createContextKey, createContextValues, type ContextValues } from "@connectrpc/connect"
import type { QueueFull } from "@nereid/core/Errors"
import { type HeldMemory, MemoryBudget } from "../limit/MemoryBudget.ts"
import { connectionOf, type IncomingRequest } from "../port/HttpExchange.ts"

/** Context key of what the connection of the call holds. */
export const memory = createContextKey<HeldMemory>(new MemoryBudget(Infinity).unattributed)

/** Context key of the function that takes the bytes of a response, until `release`. */
export const takeResponse = createContextKey<(bytes: number) => QueueFull | undefined>(() => undefined)

const releases = new WeakMap<IncomingRequest, () => void>()

export const contextValues =
  (budget: MemoryBudget) =>
  (request: IncomingRequest): ContextValues => {
    const held = budget.of(connectionOf(request))
    let size = 0
    releases.set(request, () => {
      held.give(size)
      size = 0
    })
    const take = (bytes: number): QueueFull | undefined => {
      const full = held.takeResponse(bytes)
      if (full === undefined) size += bytes
      return full
    }
    return createContextValues().set(memory, held).set(takeResponse, take)
  }

/** Gives back the bytes of the response. To be called when it has closed. */
export const release = (request: IncomingRequest): void => releases.get(request)?.()
