/** Flags about browsers: the page of the server, CORS and allowed hosts. Triton has no equivalent. */
import type { ServerOptions } from "@nereid/server/Server"
import type { Command } from "effect/cli"
import { Result } from "effect"
import * as FlagKind from "./FlagKind.ts"

/** A boolean, or the path of the page. */
const parseDashboard: FlagKind.Parse<boolean | { readonly path: `/${string}` }> = (text) => {
  if (text.startsWith("/")) return Result.succeed({ path: `/${text.slice(1)}` })
  return Result.mapError(FlagKind.parseBoolean(text), () => "true, false or a path such as /dashboard")
}

export const flags = {
  dashboard: FlagKind.withDefault(
    "dashboard",
    { takes: "boolean|path", description: "Serve a page with models, load and requests to try on the HTTP port" },
    true,
    parseDashboard,
  ),
  noDashboard: FlagKind.present("no-dashboard", "Serve no page; takes no value"),
  origins: FlagKind.list(
    "cors-origins",
    "origin,…",
    "Origins allowed to send requests, such as https://app.example.com, or * for all",
  ),
  headers: FlagKind.list("cors-headers", "name,…", "Request headers to allow in addition to those of the protocols"),
  exposedHeaders: FlagKind.list(
    "cors-exposed-headers",
    "name,…",
    "Response headers to expose in addition to those of the protocols",
  ),
  maxAge: FlagKind.integer("cors-max-age-secs", "Time that browsers may cache a preflight response, in seconds", 7200, {
    minimum: 0,
  }),
  hosts: FlagKind.list(
    "allowed-hosts",
    "host,…",
    "Public host names of the server, such as models.example.com or *.example.com, or * for any",
  ),
}

type Values = Command.Command.Config.Infer<typeof flags>

/** Returns no CORS options without an allowed origin. */
export const options = (values: Values): Pick<ServerOptions, "cors" | "allowedHosts" | "dashboard"> => {
  const { dashboard, noDashboard, origins, headers, exposedHeaders, maxAge, hosts } = values
  const cors = { origins: listed(origins), headers, exposedHeaders, maxAge: `${maxAge} seconds` } as const
  return {
    dashboard: noDashboard ? false : dashboard,
    ...(origins.length > 0 && { cors }),
    ...(hosts.length > 0 && { allowedHosts: listed(hosts) }),
  }
}

const listed = (names: ReadonlyArray<string>): "*" | ReadonlyArray<string> => (names.includes("*") ? "*" : names)
