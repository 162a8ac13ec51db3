/** The flags of the rate limiter: its modes, its resources, and what is refused. */
import { RateLimit } from "@nereid/core"
import { CurrentRateLimiter } from "@nereid/core/internal/limiter/RateLimiter"
import { expect, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import * as RateLimitFlags from "./RateLimitFlags.ts"
import { parse } from "./ServeCommand.fixture.ts"

/** The reasons why instances on device 0 and 1 that need 4 of R cannot be loaded; "off" without a rate limiter. */
const problemsOf = (line: string, environment: Readonly<Record<string, string>> = {}) =>
  Effect.gen(function* () {
    const { values, errors } = yield* parse(line === "" ? [] : line.split(" "), environment)
    if (values === undefined) return errors
    const limiter = yield* Effect.provide(CurrentRateLimiter, RateLimitFlags.layer(values.rateLimit))
    if (limiter === undefined) return "off"
    return [0, 1].map((device) => {
      const registered = limiter.register(device, { resources: [{ name: "R", count: 4 }] })
      return Result.isSuccess(registered) ? "fits" : registered.failure
    })
  })

const limited = (count: number) =>
  `Resource count for "R" is limited to ${count} which will prevent scheduling of one or more model instances, the minimum required count is 4`

// A12.rate-limiter@command
it.effect.each<readonly [string, unknown]>([
  ["", "off"],
  ["--rate-limit=OFF", "off"],
  ["--rate-limit off --rate-limit-resource R:1", "off"],
  ["--rate-limit=execution_count", ["fits", "fits"]],
  ["--rate-limit=off --rate-limit=Execution_Count", ["fits", "fits"]],
  ["--rate-limit=execution_count --rate-limit-resource=R:4", ["fits", "fits"]],
  ["--rate-limit=execution_count --rate-limit-resource=R:3", [limited(3), limited(3)]],
  ["--rate-limit=execution_count --rate-limit-resource=r:4", [limited(0), limited(0)]],
  ["--rate-limit=execution_count --rate-limit-resource=R:4:1", [limited(0), "fits"]],
  ["--rate-limit=execution_count --rate-limit-resource=R:3 --rate-limit-resource=R:4:1", [limited(3), "fits"]],
  ["--rate-limit=execution_count --rate-limit-resource=R:4:0 --rate-limit-resource=R:2:0", [limited(2), limited(0)]],
])("%s", ([line, expected]) =>
  Effect.gen(function* () {
    expect(yield* problemsOf(line)).toEqual(expected)
  }),
)

const format = "option format is '<resource_name>:<count>:<device>' or '<resource_name>:<count>'. Got"

it.effect.each<readonly [string, string]>([
  ["--rate-limit=maybe", 'invalid argument for --rate-limit: "maybe" was given, expected off or execution_count'],
  ["--rate-limit-resource=R", `--rate-limit-resource ${format} R`],
  ["--rate-limit-resource=:4", `--rate-limit-resource ${format} :4`],
  ["--rate-limit-resource=R:x", `--rate-limit-resource ${format} R:x`],
  ["--rate-limit-resource=R:-1", `--rate-limit-resource ${format} R:-1`],
  ["--rate-limit-resource=R:1:", `--rate-limit-resource ${format} R:1:`],
  ["--rate-limit-resource=R:1:2:3", `--rate-limit-resource ${format} R:1:2:3`],
  ["--rate-limit-resource=R:2147483648", `--rate-limit-resource ${format} R:2147483648`],
])("%s is refused", ([line, message]) =>
  Effect.gen(function* () {
    expect(yield* problemsOf(line)).toEqual([message])
  }),
)

it.effect("variables have the same values", () =>
  Effect.gen(function* () {
    const on = { NEREID_RATE_LIMIT: "execution_count", NEREID_RATE_LIMIT_RESOURCE_0: "R:3" }
    expect(yield* problemsOf("", on)).toEqual([limited(3), limited(3)])
    expect(yield* problemsOf("", { NEREID_RATE_LIMIT: "on" })).toEqual([
      'invalid argument for NEREID_RATE_LIMIT: "on" was given, expected off or execution_count',
    ])
    expect(yield* problemsOf("", { NEREID_RATE_LIMIT_RESOURCE: "R" })).toEqual([
      `NEREID_RATE_LIMIT_RESOURCE ${format} R`,
    ])
  }),
)

it("counts and devices in code are checked", () => {
  expect(() => RateLimit.layer({ resources: [{ name: "R", count: -1 }] })).toThrow(
    'RateLimit: count of resource "R" must be an integer of at least 0, but -1 was given.',
  )
  expect(() => RateLimit.layer({ resources: [{ name: "R", count: 1, device: 0.5 }] })).toThrow(
    'RateLimit: device of resource "R" must be an integer of at least 0, but 0.5 was given.',
  )
})
