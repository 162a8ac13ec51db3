/** The flags of response caches: sizes, a shared cache, and what is refused. */
import { CacheSettings } from "@nereid/core/internal/cache/CacheSettings"
import { expect, it } from "@effect/vitest"
import { Effect, Layer, Result } from "effect"
import * as CacheFlags from "./CacheFlags.ts"
import { parse } from "./ServeCommand.fixture.ts"

const settingsOf = (line: string, environment: CacheFlags.Environment = {}) =>
  Effect.gen(function* () {
    const { values, errors } = yield* parse(line.split(" "))
    if (values === undefined) return Result.fail(String(errors))
    const layer = yield* Effect.result(CacheFlags.layer(values.cache, environment))
    if (Result.isFailure(layer)) return Result.fail(String(layer.failure.cause))
    return Result.succeed(yield* Effect.service(CacheSettings).pipe(Effect.provide(Layer.fresh(layer.success))))
  })

// A12.cache.flags@command
it.effect.each<readonly [string, number | undefined]>([
  ["--log-verbose=0", undefined],
  ["--cache-config=local,size=1048576", 1_048_576],
  ["--cache-config=local,size=1 --cache-config local,size=2097152", 2_097_152],
  ["--response-cache-byte-size=2000000", 2_000_000],
])("%s is a size in bytes", ([line, maxBytes]) =>
  Effect.gen(function* () {
    expect(yield* settingsOf(line)).toEqual(Result.succeed(maxBytes === undefined ? {} : { maxBytes }))
  }),
)

it.effect("redis with host and port is a shared cache, with Triton's other settings too", () =>
  Effect.gen(function* () {
    const more =
      "--cache-config=redis,db=1 --cache-config=redis,socket_timeout=50 --cache-config=redis,connect_timeout=100 " +
      "--cache-config=redis,pool_size=4 --cache-config=redis,wait_timeout=10 --cache-config=redis,expiry=60"
    const settings = yield* settingsOf(`--cache-config redis,host=localhost --cache-config redis,port=1 ${more}`)
    expect(Result.getOrThrow(settings).shared).toBeDefined()
  }),
)

it.effect.each<readonly [string, string]>([
  ["--cache-config=local,size=abc", 'size is "abc", expected an integer of at least 1'],
  ["--cache-config=local,size=0", 'size is "0", expected an integer of at least 1'],
  ["--cache-config=redis,host=localhost", "didn't specify address. Must at a minimum specify 'host' and 'port'"],
  ["--cache-config=redis,host=a --cache-config=redis,port=0", 'port is "0", expected an integer from 1 to 65535'],
  [
    "--cache-config=redis,host=a --cache-config=redis,port=1 --cache-config=redis,socket_timeout=0",
    'socket_timeout is "0", expected an integer from 1 to 10000',
  ],
  [
    "--cache-config=redis,host=a --cache-config=redis,port=1 --cache-config=redis,cacert=/none",
    "Cannot read the file of --cache-config redis,cacert",
  ],
  [
    "--cache-config=local,size=1 --response-cache-byte-size=1",
    "Incompatible flags --response-cache-byte-size and --cache-config both provided. Please provide one or the other.",
  ],
  [
    "--cache-config=redis,host=a --cache-config=local,size=1",
    "found multiple cache configurations, but only a single cache is currently supported",
  ],
])("%s is refused", ([line, message]) =>
  Effect.gen(function* () {
    const settings = yield* settingsOf(line)
    expect(Result.isFailure(settings) ? settings.failure : "").toContain(message)
  }),
)

it.effect.each(["local", "local,foo=1", "nope,x=1", "size=5", "redis,password"])(
  "--cache-config=%s is refused",
  (text) =>
    Effect.gen(function* () {
      const { errors } = yield* parse([`--cache-config=${text}`])
      expect(errors).toEqual([expect.stringContaining("local,size=<value>, or redis,host|port|")])
      expect(errors?.[0]).not.toContain("x=1")
    }),
)
