/**
 * Flags of tracing, and the server options they set. `--trace-config` takes one setting at a time, optionally with a
 * mode: `rate=100`, `triton,file=trace.json`. The older flags set the same options, one each.
 */
import type { ServerOptions } from "@nereid/server/Server"
import { Effect, Result } from "effect"
import { CliError, type Command } from "effect/cli"
import * as FlagKind from "./FlagKind.ts"

type Settings = NonNullable<ServerOptions["trace"]>
type Level = NonNullable<Settings["levels"]>[number]
type Setting = Omit<Settings, "levels"> & { readonly level?: Level | "OFF" }

const levels: ReadonlyArray<Level | "OFF"> = ["OFF", "TIMESTAMPS", "TENSORS"]

const parseLevel: FlagKind.Parse<Setting> = (text) => {
  const level = levels.find((level) => level === text.toUpperCase())
  return level === undefined ? Result.fail(levels.join(", ")) : Result.succeed({ level })
}

const number =
  (range: FlagKind.Range, setting: (value: number) => Setting): FlagKind.Parse<Setting> =>
  (text) =>
    Result.map(FlagKind.parseInteger(range)(text), setting)

/** The bounds are those of the protocol's trace settings. */
const unsigned = { minimum: 0, maximum: 2 ** 32 - 1 }
const parseRate = number(unsigned, (rate) => ({ rate }))
const parseCount = number({ minimum: -1, maximum: 2 ** 31 - 1 }, (count) => ({ count }))
const parseLogFrequency = number(unsigned, (logFrequency) => ({ logFrequency }))
const parseFile: FlagKind.Parse<Setting> = (file) => Result.succeed({ file })

const settings = new Map<string, FlagKind.Parse<Setting>>([
  ["level", parseLevel],
  ["rate", parseRate],
  ["count", parseCount],
  ["triton,file", parseFile],
  ["triton,log-frequency", parseLogFrequency],
  ["mode", (mode) => (mode === "triton" ? Result.succeed({}) : Result.fail("mode=triton (the only supported mode)"))],
])

const parse: FlagKind.Parse<Setting> = (text) => {
  const [key = "", value = ""] = text.split(/=(.*)/s)
  const parseValue = settings.get(key)
  if (parseValue !== undefined) return parseValue(value)
  return Result.fail(`setting=value, such as rate=100, with a setting of ${[...settings.keys()].join(", ")}`)
}

/** A flag that `--trace-config` has replaced. */
const deprecatedFlag = (name: string, takes: string, key: string, parseValue: FlagKind.Parse<Setting>) =>
  FlagKind.collected(name, { takes, description: `Same as --trace-config ${key}=…` }, parseValue)

export const flags = {
  settings: FlagKind.collected(
    "trace-config",
    {
      takes: "setting=value",
      description:
        "Trace setting: level=OFF|TIMESTAMPS|TENSORS, rate=1000 (one in N), count=-1 (no limit), triton,file=PATH, triton,log-frequency=0 (traces per file); repeatable",
    },
    parse,
  ),
  file: deprecatedFlag("trace-file", "path", "triton,file", parseFile),
  level: deprecatedFlag("trace-level", levels.join("|"), "level", parseLevel),
  rate: deprecatedFlag("trace-rate", "integer", "rate", parseRate),
  count: deprecatedFlag("trace-count", "integer", "count", parseCount),
  logFrequency: deprecatedFlag("trace-log-frequency", "integer", "triton,log-frequency", parseLogFrequency),
}

type Values = Command.Command.Config.Infer<typeof flags>

/** Returns the trace options. Fails if tracing is on without a file. */
export const options = (values: Values): Effect.Effect<Pick<ServerOptions, "trace">, CliError.UserError> => {
  const given = Object.values(values).flat()
  const { level: _, ...trace } = given.reduce<Setting>((all, setting) => ({ ...all, ...setting }), {})
  const requestedLevels = given.flatMap(({ level }) => level ?? [])
  const levels = requestedLevels.includes("OFF") ? [] : [...new Set(requestedLevels.filter((level) => level !== "OFF"))]
  if (levels.length > 0 && (trace.file ?? "") === "") {
    const message = `--trace-config level=${levels[0]} requires --trace-config triton,file=PATH`
    return Effect.fail(new CliError.UserError({ cause: message }))
  }
  return Effect.succeed({ trace: { ...trace, levels } })
}
