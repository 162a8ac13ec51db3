/** The flags of the HTTP port, and the server's options that they are. */
import type { ServerOptions } from "@nereid/server/Server"
import type { Command } from "effect/cli"
import * as FlagKind from "./FlagKind.ts"
import * as RestrictionFlag from "./RestrictionFlag.ts"
import * as TlsFlags from "./TlsFlags.ts"

export const flags = {
  allow: FlagKind.boolean("allow-http", "Serve HTTP on its own port", true),
  address: FlagKind.text("http-address", "address", "Address to listen on for HTTP", "0.0.0.0"),
  port: FlagKind.port("http-port", "HTTP", 8000),
  maxInputSize: FlagKind.integer("http-max-input-size", "Maximum size of a request body, in bytes", 64 * 2 ** 20, {
    minimum: 1,
  }),
  maxConnectionAge: FlagKind.integer(
    "http-max-connection-age",
    "Age from which a response closes its HTTP/1.1 connection, on all ports, in milliseconds; 0 for no limit",
    0,
    { minimum: 0 },
  ),
  forward: FlagKind.text(
    "http-header-forward-pattern",
    "regex",
    "Request headers to forward as parameters, as a regular expression",
  ),
  restricted: RestrictionFlag.make("http-restricted-api", "http", "a header (key: value)"),
  tls: TlsFlags.make("http"),
}

type Values = Command.Command.Config.Infer<typeof flags>

export const options = ({ allow, address, port, maxInputSize, maxConnectionAge, forward, restricted }: Values) =>
  ({
    http: allow && { host: address ?? "0.0.0.0", port },
    maxInputSize,
    ...(maxConnectionAge === 0 ? {} : { maxHttpConnectionAge: maxConnectionAge }),
    forwardHeaders: forward === undefined ? {} : { http: forward },
    restrictedApis: { http: restricted },
  }) satisfies ServerOptions
