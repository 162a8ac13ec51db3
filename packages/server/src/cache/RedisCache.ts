/**
 * A cache of responses in Redis or Valkey, which several servers share. A lookup ends within its timeout, whatever the
 * server does, and while there is no connection it is a miss at once. RedisConnection.ts connects.
 */
import { CacheSettings, type SharedCache } from "@nereid/core/internal/cache/CacheSettings"
import { constVoid } from "effect/Function"
import { Effect, Layer } from "effect"
import { createHash } from "node:crypto"
import { type RedisAddress, RedisConnection } from "./RedisConnection.ts"

export interface RedisCacheOptions {
  readonly address: RedisAddress
  /** Maximum time that a request waits for a lookup, in milliseconds. Default 100. */
  readonly timeout?: number
  /** Time for a connection to become ready, in milliseconds. Default 1000. */
  readonly connectTimeout?: number
  /** Time after which Redis forgets a response, in seconds. Default a day. */
  readonly expiry?: number
  /** Begin of all keys. Servers with different prefixes share nothing. Default "nereid". */
  readonly prefix?: string
}

/** Maximum time that a request waits for a lookup, in milliseconds. */
const defaultTimeout = 100

/** Maximum size of a stored response, in bytes. Larger ones stay in the process. */
const maxValueBytes = 16 * 1024 * 1024

/** Maximum bytes that wait to be sent to Redis. Further responses are not stored. */
const maxUnsentBytes = 64 * 1024 * 1024

interface Log {
  readonly info: (message: string) => void
  readonly warning: (message: string) => void
}

export class RedisCache implements SharedCache {
  readonly #connection: RedisConnection
  readonly #timeout: number
  readonly #expiry: string
  readonly #prefix: string

  constructor(options: RedisCacheOptions, log: Log) {
    const { address, timeout = defaultTimeout, connectTimeout = 1000, expiry = 86_400, prefix = "nereid" } = options
    this.#timeout = timeout
    this.#expiry = String(expiry)
    this.#prefix = prefix
    const name = `Redis at ${address.host}:${address.port}`
    let isFailing = false
    this.#connection = new RedisConnection({
      address,
      connectTimeout,
      maxValueBytes,
      maxUnsentBytes,
      onReady: () => {
        isFailing = false
        log.info(`Responses are shared through ${name}`)
      },
      onFailure: (reason) => {
        // One line for an outage, however often it is tried again.
        if (!isFailing) log.warning(`Responses are not shared, because ${name} failed: ${reason}`)
        isFailing = true
      },
    })
  }

  readonly keyOf: SharedCache["keyOf"] = (parts) => {
    const hash = createHash("sha256")
    for (const part of parts) hash.update(`${Buffer.byteLength(part)}:`).update(part)
    return `${this.#prefix}:${hash.digest("base64url")}`
  }

  readonly get: SharedCache["get"] = (key, found) => {
    let isOver = false
    const end = (value: Uint8Array | undefined) => {
      if (isOver) return
      isOver = true
      clearTimeout(timer)
      found(value)
    }
    const isSent = this.#connection.send(["GET", key], (reply) => {
      if (reply?.kind === "value" || reply?.kind === "none") this.#connection.worked()
      end(reply?.kind === "value" ? reply.bytes : undefined)
    })
    const timer = isSent
      ? setTimeout(() => {
          this.#connection.fail(`no reply within ${this.#timeout} ms`)
          end(undefined)
        }, this.#timeout)
      : undefined
    if (!isSent) queueMicrotask(() => end(undefined))
    return () => {
      isOver = true
      clearTimeout(timer)
    }
  }

  readonly set: SharedCache["set"] = (key, value) => {
    if (value.length > maxValueBytes) return
    this.#connection.send(["SET", key, value, "EX", this.#expiry], constVoid)
  }

  close(): void {
    this.#connection.close()
  }
}

/** Makes models that are built with this layer share responses. `maxBytes`: default size of a cache in the process. */
export const layer = (options: RedisCacheOptions, maxBytes?: number): Layer.Layer<never> =>
  Layer.effect(
    CacheSettings,
    Effect.gen(function* () {
      const run = Effect.runForkWith(yield* Effect.context<never>())
      const log: Log = {
        info: (message) => void run(Effect.logInfo(message)),
        warning: (message) => void run(Effect.logWarning(message)),
      }
      const shared = yield* Effect.acquireRelease(
        Effect.sync(() => new RedisCache(options, log)),
        (cache) => Effect.sync(() => cache.close()),
      )
      return { shared, ...(maxBytes === undefined ? {} : { maxBytes }) }
    }),
  )
