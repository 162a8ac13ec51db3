/**
 * Settings of all response caches of a program: their default size, and a cache that several servers share. Core has no
 * sockets, so another package provides the shared cache.
 */
import { Context } from "effect"
import type { Cancel } from "../request/Request.ts"

/** Bytes by key, outside of this process. It is never waited for longer than it promises. */
export interface SharedCache {
  /** Returns the key of these parts: equal parts have equal keys in every process, others never have. */
  readonly keyOf: (parts: Iterable<string | Uint8Array>) => string
  /**
   * Calls `found` once, later, with the value; with undefined after a miss, a failure, or a timeout. A cancelled lookup
   * calls nothing.
   */
  readonly get: (key: string, found: (value: Uint8Array | undefined) => void) => Cancel
  /** Stores the value in the background, or drops it. */
  readonly set: (key: string, value: Uint8Array) => void
}

export interface CacheSettings {
  /** Maximum size of the response cache of a model that sets none, in bytes. Default 64 MiB. */
  readonly maxBytes?: number
  /** Default: responses stay in this process. */
  readonly shared?: SharedCache
}

export const CacheSettings = Context.Reference<CacheSettings>("@nereid/core/internal/cache/CacheSettings", {
  defaultValue: () => ({}),
})
