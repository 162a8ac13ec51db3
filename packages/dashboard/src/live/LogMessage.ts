/**
 * Messages of the stream at `logPath`, each the JSON `data` of one server-sent event. The first one is an `opening`
 * with the last lines. POST /v2/logging changes the levels.
 */

/** Path of the stream, below the path of the page. Its API for restrictions is `logging`. */
export const logPath = "/log"

/** Lines that the server keeps. */
export const maxLogLines = 500

/** Characters of a line, of which the server keeps the first. */
export const maxLogLineLength = 4096

/** Milliseconds between the messages of a stream. */
export const logMillis = 250

export type LogLevel = "TRACE" | "DEBUG" | "INFO" | "WARN" | "ERROR" | "FATAL"

export interface LogLine {
  /** Number of the line since the server started, from 1. A gap tells of lines that came too fast. */
  readonly index: number
  /** Milliseconds since the epoch. */
  readonly time: number
  readonly level: LogLevel
  /** Text with the cause of an error, over several lines perhaps. */
  readonly text: string
  /** Model and id of the request that the line is about; absent for any other line. */
  readonly model?: string
  readonly requestId?: string
  /** Further annotations of the line. */
  readonly annotations?: { readonly [name: string]: string | number | boolean }
}

export type LogMessage =
  | { readonly type: "opening"; readonly lines: ReadonlyArray<LogLine> }
  | { readonly type: "lines"; readonly lines: ReadonlyArray<LogLine> }
