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
    { takes: "integer", description: "From 1, a line for each request; the more, the more" },
    0,
    parseLevel,
  ),
  info: FlagKind.boolean("log-info", "Whether information is logged", true),
  warning: FlagKind.boolean("log-warning", "Whether warnings are logged", true),
  error: FlagKind.boolean("log-error", "Whether errors are logged", true),
  format: FlagKind.choice("log-format", "How the time of a line is written", "default", ["default", "ISO8601"]),
  file: FlagKind.text("log-file", "path", "A file to log to; without, it goes to stderr"),
}

type Values = Command.Command.Config.Infer<typeof flags>

export const options = ({ file = "", ...settings }: Values): Pick<ServerOptions, "logging"> => ({
  logging: { file, ...settings },
})
