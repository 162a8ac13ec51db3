/** The log of the server for a script, as `pb_utils.Logger` is for a model in Python. */
import { type Context, Effect, type LogLevel } from "effect"

/** Writes lines to the log of the server, if its settings, which clients may change, include the level. */
export interface ScriptLogger {
  readonly error: (message: string) => void
  readonly warn: (message: string) => void
  readonly info: (message: string) => void
  /** For details: logged with a verbosity of 1 or more. */
  readonly verbose: (message: string) => void
}

/** Logs with the loggers of this context. */
export const make = (context: Context.Context<never>): ScriptLogger => {
  const run = Effect.runSyncWith(context)
  const at = (level: LogLevel.Severity) => (message: string) => run(Effect.logWithLevel(level)(message))
  return { error: at("Error"), warn: at("Warn"), info: at("Info"), verbose: at("Debug") }
}
