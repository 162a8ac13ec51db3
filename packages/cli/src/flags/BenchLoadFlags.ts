/** Flags of `nereid bench` for the intensity and duration of the load. */
import * as Level from "@nereid/bench/internal/load/Level"
import type { SweepOptions } from "@nereid/bench/internal/load/Sweep"
import { Effect, Result } from "effect"
import { CliError, type Command } from "effect/cli"
import * as FlagKind from "./FlagKind.ts"
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"

const parseLevels =
  (integer: boolean): FlagKind.Parse<ReadonlyArray<number>> =>
  (text) =>
    Result.try({
      try: () => Level.numbers(text, integer),
      catch: (error) => errorMessage(error),
    })

const parseNumber =
  (maximum = Infinity): FlagKind.Parse<number> =>
  (text) => {
    const value = /^\d*\.?\d+$/.test(text) ? Number(text) : Number.NaN
    if (value > 0 && value <= maximum) return Result.succeed(value)
    return Result.fail(maximum === Infinity ? "a number above 0" : `a number above 0 and up to ${maximum}`)
  }

export const flags = {
  concurrency: FlagKind.optional(
    "concurrency",
    {
      takes: "numbers",
      aliases: ["concurrency-range"],
      description: "Requests in flight at any time, as one level or several: 1,4,16 or 1:16:5 or 1:64:x2",
      fallback: "1",
    },
    parseLevels(true),
  ),
  rates: FlagKind.optional(
    "request-rate",
    {
      takes: "numbers",
      aliases: ["request-rate-range"],
      description: "Requests to send per second, without waiting for responses; replaces --concurrency",
    },
    parseLevels(false),
  ),
  multiples: FlagKind.optional(
    "open-loop",
    {
      takes: "numbers",
      description:
        "Rates as multiples of the capacity, such as 1.2,2,5; the capacity is measured first with --concurrency " +
        "requests in flight (default 64)",
    },
    parseLevels(false),
  ),
  deadline: FlagKind.optional(
    "deadline",
    {
      takes: "number",
      description:
        "Time after which callers give up, in milliseconds, with --request-rate or --open-loop (default with " +
        "--open-loop 100)",
    },
    parseNumber(999_999),
  ),
  tellDeadline: FlagKind.boolean("tell-deadline", "Whether requests tell the server their deadline", true),
  distribution: FlagKind.choice("request-distribution", "Distribution of send times with --request-rate", "poisson", [
    "constant",
    "poisson",
  ]),
  maxOutstanding: FlagKind.integer("max-outstanding", "Maximum requests in flight with --request-rate", 1024, {
    minimum: 1,
    maximum: 65_536,
  }),
  connections: FlagKind.integer("connections", "Maximum connections over gRPC", 4, {
    minimum: 1,
    maximum: 65_536,
  }),
  seconds: FlagKind.withDefault(
    "seconds",
    { takes: "number", description: "Duration of each round, in seconds" },
    3,
    parseNumber(),
  ),
  interval: FlagKind.optional(
    "measurement-interval",
    { takes: "integer", aliases: ["p"], description: "Duration of each round, in milliseconds; replaces --seconds" },
    FlagKind.parseInteger({ minimum: 1 }),
  ),
  requests: FlagKind.optional(
    "request-count",
    { takes: "integer", description: "Requests in each round; replaces --seconds" },
    FlagKind.parseInteger({ minimum: 1 }),
  ),
  rounds: FlagKind.integer("rounds", "Number of rounds for each level; the results are their medians", 3, {
    minimum: 1,
  }),
  warmUp: FlagKind.withDefault(
    "warm-up",
    { takes: "number", description: "Warm-up time before the first round of each level, in seconds" },
    1,
    (text) => (/^0*\.?0+$/.test(text) ? Result.succeed(0) : parseNumber()(text)),
  ),
  patience: FlagKind.withDefault(
    "patience",
    { takes: "number", description: "Time without any response that ends a round, in seconds" },
    30,
    parseNumber(),
  ),
  threshold: FlagKind.optional(
    "latency-threshold",
    {
      takes: "number",
      aliases: ["l"],
      description: "Highest percentile of a level, in milliseconds, above which later levels are skipped",
    },
    parseNumber(),
  ),
  percentages: FlagKind.list(
    "percentile",
    "number,…",
    "Latency percentiles to report, above 0 and below 100",
    "50,90,99",
  ),
}

type Values = Command.Command.Config.Infer<typeof flags>

export interface LoadOptions extends Pick<
  SweepOptions,
  "levels" | "rounds" | "extent" | "warmUp" | "connections" | "maxOutstanding" | "patience" | "deadline"
> {
  readonly percentages: ReadonlyArray<number>
  /** Highest percentile, in milliseconds, above which the sweep ends. */
  readonly threshold: number
}

/** Requests in flight that measure the capacity for `--open-loop`. */
const defaultCapacityCalls = 64

/** Milliseconds, with `--open-loop`. */
const defaultDeadline = 100

/** Fails if flags contradict each other. */
export const options = (values: Values): Effect.Effect<LoadOptions, CliError.UserError> => {
  const { concurrency, rates, multiples, distribution, interval, requests, threshold = Infinity } = values
  const refuse = (message: string) => Effect.fail(new CliError.UserError({ cause: message }))
  if (concurrency !== undefined && rates !== undefined) {
    return refuse("--concurrency and --request-rate exclude each other: pass one of them")
  }
  if (multiples !== undefined && rates !== undefined) {
    return refuse("--open-loop and --request-rate exclude each other: pass one of them")
  }
  if (multiples !== undefined && concurrency !== undefined && concurrency.length > 1) {
    return refuse("--open-loop measures the capacity at one level: pass one number to --concurrency")
  }
  if (values.deadline !== undefined && multiples === undefined && rates === undefined) {
    return refuse("--deadline requires --open-loop or --request-rate")
  }
  const percentages = values.percentages.map(Number)
  const wrong = values.percentages.find(
    (_, index) => !((percentages[index] ?? 0) > 0 && (percentages[index] ?? 0) < 100),
  )
  if (wrong !== undefined) return refuse(`--percentile: ${wrong} is not a number above 0 and below 100`)
  const milliseconds = values.deadline ?? (multiples === undefined ? undefined : defaultDeadline)
  const seconds = interval === undefined ? values.seconds : interval / 1000
  return Effect.succeed({
    levels: multiples?.map((times) => ({
      times,
      concurrency: concurrency?.[0] ?? defaultCapacityCalls,
      distribution,
    })) ??
      rates?.map((perSecond) => ({ perSecond, distribution })) ??
      concurrency?.map((each) => ({ concurrency: each })) ?? [{ concurrency: 1 }],
    rounds: values.rounds,
    extent: requests === undefined ? { seconds } : { requests },
    warmUp: values.warmUp === 0 ? undefined : { seconds: values.warmUp },
    connections: values.connections,
    maxOutstanding: values.maxOutstanding,
    patience: values.patience * 1000,
    deadline: milliseconds === undefined ? undefined : { milliseconds, isTold: values.tellDeadline },
    percentages: percentages.length === 0 ? [50, 90, 99] : percentages.toSorted((one, other) => one - other),
    threshold,
  })
}
