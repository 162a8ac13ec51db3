/** Flags of CORS for both ports. Triton has no equivalent. */
import type { ServerOptions } from "@nereid/server/Server"
import type { Command } from "effect/cli"
import * as FlagKind from "./FlagKind.ts"

export const flags = {
  origins: FlagKind.list(
    "cors-origins",
    "origin,…",
    "Origins whose pages may ask, as https://app.example.com, or * for all",
  ),
  headers: FlagKind.list("cors-headers", "name,…", "Headers that they may send beside those of the protocols"),
  exposedHeaders: FlagKind.list(
    "cors-exposed-headers",
    "name,…",
    "Headers that they may see beside those of the protocols",
  ),
  maxAge: FlagKind.integer("cors-max-age-secs", "How long browsers remember what they may send", 7200, { minimum: 0 }),
}

type Values = Command.Command.Config.Infer<typeof flags>

/** Returns the CORS options; none without an allowed origin. */
export const options = ({ origins, headers, exposedHeaders, maxAge }: Values): Pick<ServerOptions, "cors"> =>
  origins.length === 0
    ? {}
    : { cors: { origins: origins.includes("*") ? "*" : origins, headers, exposedHeaders, maxAge: `${maxAge} seconds` } }
