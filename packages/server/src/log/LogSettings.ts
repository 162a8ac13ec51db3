/**
 * Log settings, which callers read and change while the server runs, by the logging extension of the protocol:
 * https://github.com/triton-inference-server/server/blob/main/docs/protocol/extension_logging.md
 * LogLine.ts formats lines; Logging.ts writes them.
 */
import { create } from "@bufbuild/protobuf"
import { Result } from "effect"
import { type InferenceError, InvalidRequest, Unsupported } from "@nereid/core/Errors"
import type { LogFilter } from "@nereid/core/internal/running/LogFilter"
import { type SettingsDocument, wrongType } from "@nereid/core/internal/codec/json/SettingsDocument"
import {
  type LogSettingsRequest,
  type LogSettingsResponse,
  LogSettingsResponse_SettingValueSchema,
  LogSettingsResponseSchema,
} from "@nereid/protocol/grpc_service"
import { LogTap } from "./LogTap.ts"

/** The formats of Triton's log, and JSON lines (JsonLine.ts). */
export type LogFormat = "default" | "ISO8601" | "json"

export interface LogSettings {
  /** Path of the log file; empty for stderr. */
  readonly file: string
  readonly info: boolean
  readonly warning: boolean
  readonly error: boolean
  /** Verbosity. 1 logs every request and the level Debug; 2 also logs the level Trace. Default 0. */
  readonly verboseLevel: number
  readonly format: LogFormat
  /**
   * Whether messages are quoted and escaped as in JSON. Without, texts from clients can start lines and control
   * terminals. The format json always escapes.
   */
  readonly escapeMessages: boolean
}

/** The settings of a running server. */
export interface LogControl extends LogFilter {
  readonly current: () => LogSettings
  readonly change: (changes: LogChanges) => LogSettings
  /** Events that are logged. */
  readonly events: LogTap
}

/** Settings that can change while the server runs. */
export type LogChanges = Partial<Omit<LogSettings, "file" | "escapeMessages">>

const defaults: LogSettings = {
  file: "",
  info: true,
  warning: true,
  error: true,
  verboseLevel: 0,
  format: "default",
  escapeMessages: true,
}

export const make = (options: Partial<LogSettings> = {}): LogControl => {
  let settings: LogSettings = { ...defaults, ...options }
  const listeners = new Set<() => void>()
  return {
    events: new LogTap(),
    current: () => settings,
    change: (changes) => {
      settings = { ...settings, ...changes }
      for (const listener of listeners) listener()
      return settings
    },
    onChange: (listener) => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    isOn: (level) => {
      switch (level) {
        case "Trace":
          return settings.verboseLevel >= 2
        case "Debug":
          return settings.verboseLevel >= 1
        case "Info":
          return settings.info
        case "Warn":
          return settings.warning
        case "None":
          return false
        default:
          return settings.error
      }
    },
  }
}

/** JSON of the settings, as in HTTP responses. */
export const json = ({ file, info, warning, error, verboseLevel, format }: LogSettings) => ({
  log_file: file,
  log_info: info,
  log_warning: warning,
  log_error: error,
  log_verbose_level: verboseLevel,
  log_format: format,
})

export const message = (settings: LogSettings): LogSettingsResponse => {
  const values = Object.entries(json(settings)).map(([name, value]) => [name, settingValue(value)] as const)
  return create(LogSettingsResponseSchema, { settings: Object.fromEntries(values) })
}

const settingValue = (value: boolean | number | string) => {
  const parameterChoice =
    typeof value === "boolean"
      ? ({ case: "boolParam", value } as const)
      : typeof value === "number"
        ? ({ case: "uint32Param", value } as const)
        : ({ case: "stringParam", value } as const)
  return create(LogSettingsResponse_SettingValueSchema, { parameterChoice })
}

/** New value of a setting: undefined for unchanged, `wrong` for a type that no setting has. */
type Value = boolean | number | string | undefined | typeof wrong
const wrong = Symbol("wrong")

/** Error messages of a port. */
interface ErrorTexts {
  readonly wrongType: (name: string, expected: "boolean" | "unsigned" | "string") => InferenceError
}

/** Parses the changes in the body of a request. */
export const fromJson = (document: SettingsDocument): Result.Result<LogChanges, InferenceError> =>
  changes(
    [...document].map(([name, setting]) => {
      switch (setting.kind) {
        case "null":
          return [name, undefined]
        case "boolean":
        case "string":
          return [name, setting.value]
        case "number":
          return [name, isUint32(setting.value) ? Number(setting.value) : wrong]
        default:
          return [name, wrong]
      }
    }),
    {
      wrongType: (name, expected) => wrongType(name, expected === "unsigned" ? "unsigned-integer" : expected),
    },
  )

export const fromMessage = ({ settings }: LogSettingsRequest): Result.Result<LogChanges, InferenceError> =>
  changes(
    Object.entries(settings).map(([name, { parameterChoice }]) => [name, parameterChoice.value]),
    {
      wrongType: (name, expected) => {
        const parameter = { boolean: "bool_param", unsigned: "uint32_param", string: "string_param" }[expected]
        return new InvalidRequest({ message: `invalid value type for '${name}' setting, expected ${parameter}.` })
      },
    },
  )

/** Parses all changes, or returns the first error. */
const changes = (
  values: ReadonlyArray<readonly [name: string, value: Value]>,
  texts: ErrorTexts,
): Result.Result<LogChanges, InferenceError> => {
  let changed: LogChanges = {}
  for (const [name, value] of values) {
    if (!Object.hasOwn(known, name)) {
      const rule = `expected one of: ${Object.keys(known).join(", ")}`
      return Result.fail(new InvalidRequest({ message: `unknown log setting '${name}', ${rule}` }))
    }
    if (value === undefined) continue
    const change = known[name]?.(value, texts) ?? Result.succeed({})
    if (Result.isFailure(change)) return Result.fail(change.failure)
    changed = { ...changed, ...change.success }
  }
  return Result.succeed(changed)
}

type Change = (value: Exclude<Value, undefined>, texts: ErrorTexts) => Result.Result<LogChanges, InferenceError>

const flag =
  (name: string, change: (value: boolean) => LogChanges): Change =>
  (value, { wrongType }) =>
    typeof value === "boolean" ? Result.succeed(change(value)) : Result.fail(wrongType(name, "boolean"))

const fileIsFixed = "log file location can not be updated through network protocol"

/** Parsers of the settings: each returns the change, or the reason for a refusal. */
const known: { readonly [name: string]: Change } = {
  log_file: () => Result.fail(new Unsupported({ message: fileIsFixed })),
  log_info: flag("log_info", (info) => ({ info })),
  log_warning: flag("log_warning", (warning) => ({ warning })),
  log_error: flag("log_error", (error) => ({ error })),
  log_verbose_level: (value, { wrongType }) =>
    typeof value === "number"
      ? Result.succeed({ verboseLevel: value })
      : Result.fail(wrongType("log_verbose_level", "unsigned")),
  log_format: (value, { wrongType }) => {
    if (typeof value !== "string") return Result.fail(wrongType("log_format", "string"))
    if (value === "default" || value === "ISO8601" || value === "json") return Result.succeed({ format: value })
    const rule = `expected 'default' or 'ISO8601', got: ${value.slice(0, 40)}`
    return Result.fail(new InvalidRequest({ message: `Unable to parse 'log_format', ${rule}` }))
  },
}

const isUint32 = (digits: string): boolean => /^[0-9]{1,10}$/.test(digits) && Number(digits) < 2 ** 32
