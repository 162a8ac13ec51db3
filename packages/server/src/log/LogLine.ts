/**
 * Formats a log event as one line of text, in the format of Triton's log, for compatibility with its parsers:
 *
 *   default   I1121 04:29:49.123000 4242 fiber:12] "message"
 *   ISO8601   2026-11-21T04:29:49Z I 4242 fiber:12] "message"
 *
 * The fields are level, time (UTC) and process. The file and line of a model's code follow, or the fiber. The
 * message is quoted as in JSON, so that text from clients cannot start a new line or control a terminal, unless the
 * setting `escapeMessages` is off.
 */
import { LogSource } from "@nereid/core/internal/running/LogSource"
import { Cause, type Fiber, type LogLevel, References } from "effect"
import { inspect } from "node:util"
import { CallLine } from "./CallLine.ts"

export interface LogEvent {
  readonly message: unknown
  readonly logLevel: LogLevel.LogLevel
  readonly cause: Cause.Cause<unknown>
  readonly fiber: Pick<Fiber.Fiber<unknown, unknown>, "id" | "getRef" | "cache">
  readonly date: Date
}

export interface LineSettings {
  readonly format: "default" | "ISO8601"
  readonly escapeMessages: boolean
}

export const print = (event: LogEvent, { format, escapeMessages }: LineSettings, pid: number): string => {
  const letter = letters[event.logLevel]
  const message = text(event)
  const source = event.fiber.getRef(LogSource) ?? `fiber:${event.fiber.id}`
  const rest = `${pid} ${source}] ${escapeMessages ? quoted(message) : message}`
  const iso = event.date.toISOString()
  if (format === "ISO8601") return `${iso.slice(0, 19)}Z ${letter} ${rest}`
  return `${letter}${iso.slice(5, 7)}${iso.slice(8, 10)} ${iso.slice(11, 23)}000 ${rest}`
}

/** Letters of the log levels. Verbose lines have the letter of information. */
const letters: { readonly [L in LogLevel.LogLevel]: string } = {
  All: "I",
  Trace: "I",
  Debug: "I",
  Info: "I",
  Warn: "W",
  Error: "E",
  Fatal: "E",
  None: "I",
}

const text = ({ message, cause, fiber }: LogEvent): string => {
  const parts = (Array.isArray(message) ? message : [message]).map(printed)
  for (const [name, value] of Object.entries(fiber.getRef(References.CurrentLogAnnotations))) {
    parts.push(`${name}=${printed(value)}`)
  }
  if (cause.reasons.length > 0) parts.push(Cause.pretty(cause))
  return parts.join(" ")
}

/** Formats one part of a message. */
export const printed = (value: unknown): string =>
  typeof value === "string" || value instanceof CallLine
    ? String(value)
    : inspect(value, { breakLength: Infinity, depth: 4 })

const quoted = (message: string): string => escaped(JSON.stringify(message))

/** Escapes the control characters that JSON leaves as they are. */
export const escaped = (json: string): string =>
  json.replaceAll(
    /[\u007f-\u009f\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  )
