/**
 * Formats a log event as one JSON object in one line:
 *
 *   {"time":"2026-11-21T04:29:49.123Z","level":"WARN","message":"slow","pid":4242,"fiber":12,"model":"m"}
 *
 * Log annotations are members too. `model` and `request_id` are those of the request that a handler executes, or of the
 * call that the line describes. `source` is the file and line of a model's code. `cause` is text. `trace_id` and
 * `span_id` are those of the current span.
 */
import { Caller } from "@nereid/core/internal/call/Caller"
import { LogSource } from "@nereid/core/internal/running/LogSource"
import { Cause, References } from "effect"
import { inspect } from "node:util"
import { CallLine } from "./CallLine.ts"
import { escaped, type LogEvent, printed } from "./LogLine.ts"

export type Member = string | number | boolean

export const printJson = (event: LogEvent, pid: number): string =>
  escaped(JSON.stringify(Object.fromEntries(members(event, pid))))

/** The members of the object, in their order. */
export const members = (event: LogEvent, pid: number): ReadonlyMap<string, Member> => {
  const { fiber, cause } = event
  const parts = Array.isArray(event.message) ? event.message : [event.message]
  const members = new Map<string, Member>([
    ["time", event.date.toISOString()],
    ["level", event.logLevel.toUpperCase()],
    ["message", parts.map(printed).join(" ")],
    ["pid", pid],
    ["fiber", fiber.id],
  ])
  const add = (name: string, value: unknown) => {
    if (value !== undefined && !members.has(name)) members.set(name, member(value))
  }
  for (const part of parts) {
    if (part instanceof CallLine) for (const [name, value] of Object.entries(part.fields)) add(name, value)
  }
  if (cause.reasons.length > 0) add("cause", Cause.pretty(cause))
  const { span } = fiber.cache
  add("trace_id", span?.traceId)
  add("span_id", span?.spanId)
  for (const [name, value] of Object.entries(fiber.getRef(References.CurrentLogAnnotations))) add(name, value)
  add("source", fiber.getRef(LogSource))
  const caller = fiber.getRef(Caller)
  add("model", caller?.cycles?.model)
  add("request_id", caller?.id === "" ? undefined : caller?.id)
  return members
}

/** JSON has neither bigint nor NaN, and objects may be circular. */
const member = (value: unknown): Member => {
  if (typeof value === "string" || typeof value === "boolean") return value
  if (typeof value === "number" && Number.isFinite(value)) return value
  return typeof value === "bigint" ? String(value) : inspect(value, { breakLength: Infinity, depth: 4 })
}
