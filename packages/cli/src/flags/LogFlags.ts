/** The flags of the log, and the server's options that they are. */
import type { ServerOptions } from "@nereid/server/Server"
import { Result } from "effect"
import type { Command } from "effect/cli"
import * as FlagKind from "./FlagKind.ts"

const parseLevel: FlagKind.Parse<number> = (text) =>
  Result.orElse(FlagKind.parseInteger({ minimum: 0, maximum: 2 ** 32 - 1 })(text), (expected) =>
    Result.mapError(Result.map(FlagKind.parseBoolean(text), Number), () => `${expected}, true for 1 or false for 0`),
  )

export const flags = {
  verboseLevel: FlagKind.withDefault(
    "log-verbose",
    { takes: "integer", description: "Verbosity; 1 or higher logs every request" },
    0,
    parseLevel,
  ),
  info: FlagKind.boolean("log-info", "Log informational messages", true),
  warning: FlagKind.boolean("log-warning", "Log warnings", true),
  error: FlagKind.boolean("log-error", "Log errors", true),
  format: FlagKind.choice(
    "log-format",
    "Format of log lines: Triton's, Triton's with ISO 8601 times, or JSON objects",
    "default",
    ["default", "ISO8601", "json"],
  ),
  file: FlagKind.text("log-file", "path", "Log file", "stderr"),
}

type Values = Command.Command.Config.Infer<typeof flags>

export const options = ({ file = "", ...settings }: Values): Pick<ServerOptions, "logging"> => ({
  logging: { file, ...settings },
})

/** Returns the setting of Triton's environment variable: exactly "0" logs messages as they are. */
export const environmentOptions = (environment: Readonly<Record<string, string | undefined>>) => ({
  escapeMessages: environment["TRITON_SERVER_ESCAPE_LOG_MESSAGES"] !== "0",
})
