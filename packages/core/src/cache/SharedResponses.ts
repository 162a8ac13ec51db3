/**
 * The responses of one model in a cache that several servers share. ResponseCache.ts asks it after a miss of its own
 * store.
 */
import { Effect } from "effect"
import type { Cancel, Request, Response } from "../request/Request.ts"
import type { SharedCache } from "./CacheSettings.ts"
import * as RequestKey from "./RequestKey.ts"
import * as StoredResponse from "./StoredResponse.ts"

export interface SharedResponsesOptions extends Omit<RequestKey.RequestKeyOptions, "epoch"> {
  readonly model: string
  readonly version?: string
  readonly revision?: string
}

export interface SharedResponses {
  readonly keyOf: (request: Request) => string
  /** Calls `found` once, later; with undefined if the response is not there. A cancelled lookup calls nothing. */
  readonly get: (key: string, found: (response: Response | undefined) => void) => Cancel
  readonly set: (key: string, response: Response) => void
  /** Completes once no lookup is under way. */
  readonly settled: Effect.Effect<void>
}

/** Changes with the form of keys and of stored responses. */
const format = "1"

/** Undefined for a model without a version or a revision: nothing says that another server computes the same. */
export const make = (cache: SharedCache, options: SharedResponsesOptions): SharedResponses | undefined => {
  const { model, version, revision } = options
  if (version === undefined || revision === undefined) return undefined
  const identity = JSON.stringify([format, model, version, revision])
  const remainder = RequestKey.remainder(options)
  let lookups = 0
  let waiting: Array<() => void> = []
  const ended = () => {
    lookups -= 1
    if (lookups > 0) return
    const resumes = waiting
    waiting = []
    for (const resume of resumes) resume()
  }
  return {
    keyOf: (request) => cache.keyOf([identity, remainder(request), ...RequestKey.bytesOf(request)]),
    get: (key, found) => {
      lookups += 1
      let isOver = false
      const cancel = cache.get(key, (value) => {
        isOver = true
        try {
          found(value && StoredResponse.decode(value))
        } finally {
          ended()
        }
      })
      return () => {
        if (isOver) return
        isOver = true
        cancel()
        ended()
      }
    },
    set: (key, response) => cache.set(key, StoredResponse.encode(response)),
    settled: Effect.callback((resume) => {
      if (lookups === 0) return resume(Effect.void)
      const done = () => resume(Effect.void)
      waiting.push(done)
      return Effect.sync(() => {
        waiting = waiting.filter((other) => other !== done)
      })
    }),
  }
}
