/**
 * Trace settings, for all models or for single ones. Callers read and change them while the server runs, by the trace
 * extension of the protocol:
 * https://github.com/triton-inference-server/server/blob/main/docs/protocol/extension_trace.md Tracing.ts applies them.
 */
import { create } from "@bufbuild/protobuf"
import { Result } from "effect"
import { type InferenceError, InvalidRequest, Unsupported } from "@nereid/core/Errors"
import { type SettingsDocument, wrongType } from "@nereid/core/internal/codec/json/SettingsDocument"
import * as OpenTelemetrySettings from "./OpenTelemetrySettings.ts"
import type { OpenTelemetryOptions } from "./OpenTelemetrySettings.ts"
import {
  type TraceSettingRequest,
  type TraceSettingResponse,
  TraceSettingResponse_SettingValueSchema,
  TraceSettingResponseSchema,
} from "@nereid/protocol/grpc_service"

/** Content of traces. TIMESTAMPS: the timestamps of a request; TENSORS: also its tensors. */
export type TraceLevel = "TIMESTAMPS" | "TENSORS"

/** Destination of traces: a file in Triton's format, or a receiver of OpenTelemetry. */
export type TraceMode = "triton" | "opentelemetry"

/** Settings of Triton's traces: which requests, and which content. */
export interface TraceSettings {
  /** Content of traces; empty turns tracing off. */
  readonly levels: ReadonlyArray<TraceLevel>
  /** Traces one of this many requests; 0 traces none. */
  readonly rate: number
  /** Number of requests left to trace; -1 for no limit. */
  readonly count: number
  /** Number of traces per numbered file; 0 writes all traces to one file. */
  readonly logFrequency: number
  /** Path of the trace file; empty writes nothing. */
  readonly file: string
  /** Where traces go. Default "triton", to the file. */
  readonly mode: TraceMode
  /** Receiver of the mode "opentelemetry". */
  readonly openTelemetry: OpenTelemetryOptions
}

export const defaults: TraceSettings = {
  levels: [],
  rate: 1000,
  count: -1,
  logFrequency: 0,
  file: "",
  mode: "triton",
  openTelemetry: {},
}

/** Changes of one request: new values, or undefined to reset a setting to its fallback. */
export interface TraceChanges {
  readonly levels?: ReadonlyArray<TraceLevel> | undefined
  readonly rate?: number | undefined
  readonly count?: number | undefined
  readonly logFrequency?: number | undefined
}

/** Values as strings, under the names of the protocol. */
const texts = ({ levels, rate, count, logFrequency, file, mode, openTelemetry }: TraceSettings) => {
  const chosen = {
    trace_level: levels.length === 0 ? ["OFF"] : [...levels],
    trace_rate: String(rate),
    trace_count: String(count),
  }
  return mode === "triton"
    ? { ...chosen, log_frequency: String(logFrequency), trace_file: file, trace_mode: mode }
    : { ...chosen, trace_mode: mode, ...OpenTelemetrySettings.texts(openTelemetry) }
}

/** JSON of the settings, as in HTTP responses. */
export const json = texts

export const message = (settings: TraceSettings): TraceSettingResponse => {
  const values = Object.entries(texts(settings)).map(([name, value]) => {
    const list = typeof value === "string" ? [value] : value
    return [name, create(TraceSettingResponse_SettingValueSchema, { value: list })] as const
  })
  return create(TraceSettingResponseSchema, { settings: Object.fromEntries(values) })
}

/** Parses the changes in the body of a request. */
export const fromJson = (document: SettingsDocument): Result.Result<TraceChanges, InferenceError> =>
  changes(
    (name) => {
      const setting = document.get(name)
      if (setting === undefined) return undefined
      if (setting.kind === "null") return Result.succeed([])
      if (setting.kind !== (name === "trace_level" ? "strings" : "string")) {
        return Result.fail(wrongType(name, name === "trace_level" ? "array" : "string"))
      }
      return Result.succeed(typeof setting.value === "string" ? [setting.value] : setting.value)
    },
    // Triton's texts differ by a space.
    (text) => `got:${text}`,
  )

export const fromMessage = ({ settings }: TraceSettingRequest): Result.Result<TraceChanges, InferenceError> =>
  changes(
    (name) => {
      const setting = Object.hasOwn(settings, name) ? settings[name] : undefined
      return setting && Result.succeed(setting.value)
    },
    (text) => `got: ${text}`,
  )

type Value = Result.Result<ReadonlyArray<string>, InferenceError>

/**
 * Parses all changes, or returns the first error, in Triton's order of settings. A setting without a value is cleared.
 * Unknown settings are ignored, as in Triton.
 */
const changes = (
  given: (name: string) => Value | undefined,
  negative: (text: string) => string,
): Result.Result<TraceChanges, InferenceError> => {
  let changed: TraceChanges = {}
  for (const [name, read] of Object.entries(known)) {
    const value = given(name)
    if (value === undefined) continue
    const change = Result.flatMap(value, (values) => read(values, negative))
    if (Result.isFailure(change)) return Result.fail(change.failure)
    changed = { ...changed, ...change.success }
  }
  return Result.succeed(changed)
}

type Read = (
  value: ReadonlyArray<string>,
  /** The value of a count below -1, in the text of its error. */
  negative: (text: string) => string,
) => Result.Result<TraceChanges, InferenceError>

const invalid = (message: string) => Result.fail(new InvalidRequest({ message }))

const integer =
  (
    name: string,
    range: readonly [min: number, max: number],
    change: (value: number | undefined) => TraceChanges,
  ): Read =>
  (value, negative) => {
    const [text] = value
    if (text === undefined) return Result.succeed(change(undefined))
    if (value.length > 1) return invalid(`expect only 1 value for '${name}'`)
    const [min, max] = range
    const shown = text.slice(0, 40)
    if (!/^-?[0-9]+$/.test(text)) return invalid(`Unable to parse '${name}', got: ${shown}`)
    const number = Number(text)
    if (number >= min && number <= max) return Result.succeed(change(number))
    if (min < 0 && number < min && number >= -(2 ** 31)) {
      return invalid(`Unable to parse '${name}'. Expecting value >= ${min}, ${negative(shown)}`)
    }
    return invalid(`Unable to parse '${name}', value is out of range [ ${min}, ${max} ], got: ${shown}`)
  }

const maxUint32 = 2 ** 32 - 1

/** Parsers of the settings, in the order in which Triton reads them. */
const known: { readonly [name: string]: Read } = {
  trace_file: () =>
    Result.fail(new Unsupported({ message: "trace file location can not be updated through network protocol" })),
  trace_level: (value) => {
    if (value.length === 0) return Result.succeed({ levels: undefined })
    const unknown = value.find((level) => level !== "OFF" && level !== "TIMESTAMPS" && level !== "TENSORS")
    if (unknown !== undefined) return invalid(`Unable to parse 'trace_level', got: ${unknown.slice(0, 40)}`)
    if (value.length > 1 && value.includes("OFF")) return invalid("Expect only one trace level 'OFF' is specified")
    return Result.succeed({ levels: levels.filter((level) => value.includes(level)) })
  },
  trace_rate: integer("trace_rate", [0, maxUint32], (rate) => ({ rate })),
  trace_count: integer("trace_count", [-1, 2 ** 31 - 1], (count) => ({ count })),
  log_frequency: integer("log_frequency", [0, maxUint32], (logFrequency) => ({ logFrequency })),
}

const levels: ReadonlyArray<TraceLevel> = ["TIMESTAMPS", "TENSORS"]
