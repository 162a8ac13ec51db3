/**
 * Colours of log lines on a terminal: Node decides whether stderr is one, and obeys NO_COLOR and FORCE_COLOR. Files,
 * pipes and JSON have no colours.
 */
import type { LogLevel } from "effect"
import { styleText } from "node:util"

/** Colours what precedes the message: level, time, process and fiber. */
export const paint = (line: string, level: LogLevel.LogLevel): string => {
  const end = line.indexOf("]") + 1
  return styleText(colourOf(level), line.slice(0, end), { stream: process.stderr }) + line.slice(end)
}

const colourOf = (level: LogLevel.LogLevel) => {
  switch (level) {
    case "Error":
    case "Fatal":
      return "red"
    case "Warn":
      return "yellow"
    default:
      return "dim"
  }
}
