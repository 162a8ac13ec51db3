/** The last lines of the server's log. */
import { signal } from "@preact/signals"
import { type LogLine, type LogMessage, logPath, maxLogLines } from "../../src/live/LogMessage.ts"
import { messages } from "../api/events.ts"

/** The oldest first. */
export const lines = signal<ReadonlyArray<LogLine>>([])

const receive = ({ type, lines: received }: LogMessage): void => {
  lines.value = type === "opening" ? received : [...lines.value, ...received].slice(-maxLogLines)
}

export const stream = messages(logPath, receive)
