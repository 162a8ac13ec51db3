/**
 * The last lines of the log, each as JSON that is made once. The ring is bounded in lines and in characters; the oldest
 * lines leave first.
 */
import { type LogLine, type LogLevel, maxLogLineLength, maxLogLines } from "@nereid/dashboard/internal/live/LogMessage"
import { type Member, members } from "../log/JsonLine.ts"
import type { LogEvent } from "../log/LogLine.ts"

/** Maximum characters of all lines as JSON. */
const maxRingLength = 1024 * 1024

/** Annotations of a line, and characters of a name and a value, of which the ring keeps the first. */
const maxAnnotations = 20
const maxAnnotationLength = 200

export class LogRing {
  readonly #lines: Array<string> = []
  #length = 0
  #index = 0

  /** Adds a line, and returns its JSON. */
  add(event: LogEvent): string {
    this.#index += 1
    const line = JSON.stringify(lineOf(event, this.#index))
    this.#lines.push(line)
    this.#length += line.length
    while (this.#lines.length > maxLogLines || this.#length > maxRingLength) {
      this.#length -= this.#lines.shift()?.length ?? this.#length
    }
    return line
  }

  /** The lines as JSON, the oldest first. */
  get lines(): ReadonlyArray<string> {
    return this.#lines
  }
}

const lineOf = (event: LogEvent, index: number): LogLine => {
  const { message = "", cause, model, request_id: id, ...rest } = Object.fromEntries(members(event, process.pid))
  const text = cause === undefined ? String(message) : `${message}\n${cause}`
  const annotations = Object.entries(rest)
    .filter(([name]) => !own.has(name))
    .slice(0, maxAnnotations)
    .map(([name, value]) => [cut(name, maxAnnotationLength), bounded(value)] as const)
  return {
    index,
    time: event.date.getTime(),
    level: levelOf(event),
    text: cut(text, maxLogLineLength),
    ...(model !== undefined && { model: cut(String(model), maxAnnotationLength) }),
    ...(id !== undefined && { requestId: cut(String(id), maxAnnotationLength) }),
    ...(annotations.length > 0 && { annotations: Object.fromEntries(annotations) }),
  }
}

/** Members of a JSON line that have another place here, or are the same in all lines. */
const own: ReadonlySet<string> = new Set(["time", "level", "pid", "fiber"])

const levelOf = ({ logLevel }: LogEvent): LogLevel => {
  switch (logLevel) {
    case "Trace":
      return "TRACE"
    case "Debug":
      return "DEBUG"
    case "Warn":
      return "WARN"
    case "Error":
      return "ERROR"
    case "Fatal":
      return "FATAL"
    default:
      return "INFO"
  }
}

const cut = (text: string, length: number): string => (text.length > length ? `${text.slice(0, length)}…` : text)

const bounded = (value: Member): Member => (typeof value === "string" ? cut(value, maxAnnotationLength) : value)
