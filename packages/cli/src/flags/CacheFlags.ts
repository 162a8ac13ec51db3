/** Flags of response caches: their size, and a Redis server that several servers share. */
import { CacheSettings } from "@nereid/core/internal/cache/CacheSettings"
import * as RedisCache from "@nereid/server/internal/cache/RedisCache"
import { Effect, Layer, Result } from "effect"
import { CliError, type Command } from "effect/cli"
import { readFileSync } from "node:fs"
import * as FlagKind from "./FlagKind.ts"

/** A setting of a cache, `redis,host=localhost`. */
export interface CacheSetting {
  readonly cache: "local" | "redis"
  readonly name: string
  readonly value: string
}

/** Environment variables of Triton's Redis cache, which keep secrets out of the command line. */
export type Environment = Readonly<Record<string, string | undefined>>

const settings = {
  local: ["size"],
  redis: [
    "host",
    "port",
    "user",
    "password",
    "db",
    "connect_timeout",
    "socket_timeout",
    "cert",
    "key",
    "cacert",
    "sni",
    "prefix",
    "expiry",
    // Commands share one connection and wait for none.
    "pool_size",
    "wait_timeout",
  ],
}

const isCache = (cache: string): cache is CacheSetting["cache"] => cache === "local" || cache === "redis"

const parseSetting: FlagKind.Parse<CacheSetting> = (text) => {
  const [, cache = "", name = "", value = ""] = /^([^,=]+),([^,=]+)=(.*)$/s.exec(text) ?? []
  return isCache(cache) && settings[cache].includes(name)
    ? Result.succeed({ cache, name, value })
    : Result.fail(
        Object.entries(settings)
          .map(([name, names]) => `${name},${names.join("|")}=<value>`)
          .join(", or "),
      )
}

export const flags = {
  settings: FlagKind.collected(
    "cache-config",
    {
      takes: "cache,setting=value",
      description:
        "Response caches: local,size=<bytes per model>, or redis,host=<host>, redis,port=<port> and more for a shared cache; repeatable",
      // A misspelled name may have a password behind it.
      display: (value) => value.replace(/=.*/s, "=…"),
    },
    parseSetting,
  ),
  byteSize: FlagKind.optionalInteger(
    "response-cache-byte-size",
    "Size of the response cache of each model that sets none, in bytes; replaced by --cache-config",
    { minimum: 1 },
  ),
}

type Values = Command.Command.Config.Infer<typeof flags>

const refuse = (message: string) => new CliError.UserError({ cause: message })

/** Returns the warning about the deprecated flag, in Triton's words. */
export const warnings = ({ byteSize }: Values): ReadonlyArray<string> =>
  byteSize === undefined
    ? []
    : [
        "'--response-cache-byte-size' has been deprecated! This will default to the 'local' cache implementation with the " +
          "provided byte size for its config. Please use '--cache-config' instead. The equivalent --cache-config CLI args " +
          `would be: '--cache-config=local,size=${byteSize}'`,
      ]

/** Returns a layer with the settings of all response caches. */
export const layer = Effect.fnUntraced(function* (
  { settings: given, byteSize }: Values,
  environment: Environment,
): Effect.fn.Return<Layer.Layer<never>, CliError.UserError> {
  const of = (cache: CacheSetting["cache"]) =>
    new Map(given.flatMap((one) => (one.cache === cache ? [[one.name, one.value] as const] : [])))
  const [local, redis] = [of("local"), of("redis")]
  if (given.length > 0 && byteSize !== undefined) {
    const flags = "Incompatible flags --response-cache-byte-size and --cache-config both provided"
    return yield* refuse(`${flags}. Please provide one or the other.`)
  }
  if (local.size > 0 && redis.size > 0) {
    return yield* refuse("found multiple cache configurations, but only a single cache is currently supported")
  }
  const integer = (cache: ReadonlyMap<string, string>, name: string, range: FlagKind.Range) => {
    const text = cache.get(name)
    return text === undefined
      ? Effect.undefined
      : Effect.mapError(Effect.fromResult(FlagKind.parseInteger(range)(text)), (expected) =>
          refuse(`Invalid value for --cache-config: ${name} is "${text}", expected ${expected}`),
        )
  }
  if (redis.size === 0) {
    const maxBytes = (yield* integer(local, "size", { minimum: 1 })) ?? byteSize
    return maxBytes === undefined ? Layer.empty : Layer.succeed(CacheSettings, { maxBytes })
  }
  const host = redis.get("host")
  const port = yield* integer(redis, "port", { minimum: 1, maximum: 65_535 })
  if (!host || port === undefined) {
    return yield* refuse(
      "Failed to initialize RedisCache, didn't specify address. Must at a minimum specify 'host' and 'port' in the " +
        "configuration - e.g. nereid serve --cache-config redis,host=redis --cache-config redis,port=6379 " +
        "--model-repository=/models ...",
    )
  }
  const text = (name: string, variable: string) => redis.get(name) ?? environment[variable] ?? ""
  const [user, password] = [text("user", "TRITONCACHE_REDIS_USERNAME"), text("password", "TRITONCACHE_REDIS_PASSWORD")]
  const file = (name: string) => {
    const path = redis.get(name)
    if (path === undefined) return Effect.undefined
    return Effect.try({
      try: () => readFileSync(path, "utf8"),
      catch: (error) => refuse(`Cannot read the file of --cache-config redis,${name}: ${String(error)}`),
    })
  }
  const [ca, cert, key] = [yield* file("cacert"), yield* file("cert"), yield* file("key")]
  const serverName = redis.get("sni")
  const hasTls = ca !== undefined || cert !== undefined || key !== undefined || serverName !== undefined
  const database = yield* integer(redis, "db", { minimum: 0, maximum: 1_000_000 })
  const connectTimeout = yield* integer(redis, "connect_timeout", { minimum: 1, maximum: 60_000 })
  const timeout = yield* integer(redis, "socket_timeout", { minimum: 1, maximum: 10_000 })
  const expiry = yield* integer(redis, "expiry", { minimum: 1, maximum: 31_536_000 })
  const prefix = redis.get("prefix")
  return RedisCache.layer(
    {
      address: {
        host,
        port,
        ...(user === "" ? {} : { user }),
        ...(password === "" ? {} : { password }),
        ...(database === undefined ? {} : { database }),
        ...(hasTls
          ? {
              tls: {
                ...(ca === undefined ? {} : { ca }),
                ...(cert === undefined ? {} : { cert }),
                ...(key === undefined ? {} : { key }),
                ...(serverName === undefined ? {} : { serverName }),
              },
            }
          : {}),
      },
      ...(timeout === undefined ? {} : { timeout }),
      ...(connectTimeout === undefined ? {} : { connectTimeout }),
      ...(expiry === undefined ? {} : { expiry }),
      ...(prefix === undefined ? {} : { prefix }),
    },
    byteSize,
  )
})
