/**
 * Which levels the log of the server takes at present. Code in other processes need not send lines of other levels.
 * Undefined outside of a server's log: then every line is sent.
 */
import { Context, type LogLevel } from "effect"

export interface LogFilter {
  readonly isOn: (level: LogLevel.LogLevel) => boolean
  /** Calls the listener after each change of the settings, until the result is called. */
  readonly onChange: (listener: () => void) => () => void
}

export const LogFilter = Context.Reference<LogFilter | undefined>("@nereid/core/internal/running/LogFilter", {
  defaultValue: () => undefined,
})
