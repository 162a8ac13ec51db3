/**
 * Flags of tracing, and the server options they set. `--trace-config` takes one setting at a time, optionally with a
 * mode: `rate=100`, `triton,file=trace.json`. The older flags set the same options, one each, unless `--trace-config`
 * does. The variables of OpenTelemetry set what the flags of its mode leave out.
 */
import type { ServerOptions } from "@nereid/server/Server"
import { Effect, Result } from "effect"
import { CliError, type Command } from "effect/cli"
import * as FlagKind from "./FlagKind.ts"
import * as OpenTelemetryVariables from "./OpenTelemetryVariables.ts"

type Settings = NonNullable<ServerOptions["trace"]>
type Level = NonNullable<Settings["levels"]>[number]
type OpenTelemetry = NonNullable<Settings["openTelemetry"]>
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

const modes = ["triton", "opentelemetry"] as const

const size = (setting: (value: number) => OpenTelemetry, maximum = 1_000_000) =>
  number({ minimum: 1, maximum }, (value) => ({ openTelemetry: setting(value) }))

/** As Triton, also without a scheme. */
const parseUrl = (text: string): Result.Result<string, string> => {
  const url = /^[a-z]+:\/\//i.test(text) ? text : `http://${text}`
  return isHttpUrl(url) ? Result.succeed(url) : Result.fail("opentelemetry,url=URL, with http or https")
}

const isHttpUrl = (text: string): boolean => /^https?:$/.test(URL.parse(text)?.protocol ?? "")

const settings = new Map<string, FlagKind.Parse<Setting>>([
  ["level", parseLevel],
  ["rate", parseRate],
  ["count", parseCount],
  ["triton,file", parseFile],
  ["triton,log-frequency", parseLogFrequency],
  ["mode", (text) => parseMode(text)],
  ["opentelemetry,url", (text) => Result.map(parseUrl(text), (url) => ({ openTelemetry: { url } }))],
  ["opentelemetry,resource", (text) => parseResource(text)],
  ["opentelemetry,bsp_max_queue_size", size((maxQueueSize) => ({ maxQueueSize }))],
  ["opentelemetry,bsp_schedule_delay", size((scheduleDelay) => ({ scheduleDelay }), 2 ** 31 - 1)],
  ["opentelemetry,bsp_max_export_batch_size", size((maxExportBatchSize) => ({ maxExportBatchSize }))],
])

const parseMode: FlagKind.Parse<Setting> = (text) => {
  const mode = modes.find((mode) => mode === text.toLowerCase())
  return mode === undefined ? Result.fail(`mode=${modes.join("|")}`) : Result.succeed({ mode })
}

const parseResource: FlagKind.Parse<Setting> = (text) => {
  const [, key, value] = /^([^=]+)=(.*)$/s.exec(text) ?? []
  if (key === undefined || value === undefined) return Result.fail("opentelemetry,resource=key=value")
  return Result.succeed({ openTelemetry: { resource: { [key]: value } } })
}

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
        "Trace setting: level=OFF|TIMESTAMPS|TENSORS, rate=1000 (one in N), count=-1, mode=triton|opentelemetry, triton,file=PATH, opentelemetry,url=URL; repeatable",
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

/**
 * Returns the trace options. Fails if tracing is on without a destination. `environment` has the variables of
 * OpenTelemetry.
 */
export const options = (
  values: Values,
  environment: OpenTelemetryVariables.Environment,
): Effect.Effect<Pick<ServerOptions, "trace">, CliError.UserError> => {
  const { settings, ...deprecated } = values
  // As in Triton, `--trace-config` overrides the older flags.
  const given = [...Object.values(deprecated).flat(), ...settings]
  const { level: _, ...trace } = given.reduce<Setting>((all, setting) => ({ ...all, ...setting }), {})
  const levelsOf = (flags: ReadonlyArray<Setting>) => flags.flatMap(({ level }) => level ?? [])
  const newLevels = levelsOf(settings)
  const requestedLevels = newLevels.length > 0 ? newLevels : levelsOf(deprecated.level)
  const levels = requestedLevels.includes("OFF") ? [] : [...new Set(requestedLevels.filter((level) => level !== "OFF"))]
  if (trace.mode === "opentelemetry") {
    const flags = given.map(({ openTelemetry = {} }) => openTelemetry)
    const merged = (variables: OpenTelemetry): OpenTelemetry => {
      const resource = [variables, ...flags].reduce((all, { resource }) => ({ ...all, ...resource }), {})
      return { ...Object.assign({}, variables, ...flags), resource }
    }
    return Effect.map(OpenTelemetryVariables.options(environment), (variables) => ({
      trace: { ...trace, levels, openTelemetry: merged(variables) },
    }))
  }
  if (levels.length > 0 && (trace.file ?? "") === "") {
    const message = `--trace-config level=${levels[0]} requires --trace-config triton,file=PATH`
    return Effect.fail(new CliError.UserError({ cause: message }))
  }
  return Effect.succeed({ trace: { ...trace, levels } })
}
