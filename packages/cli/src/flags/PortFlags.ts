/** The flags of the one port for everything, and the server's options that they are. Triton has none of these. */
import type { ServerOptions } from "@nereid/server/Server"
import { Effect } from "effect"
import { CliError, type Command } from "effect/cli"
import * as FlagKind from "./FlagKind.ts"
import * as TlsFlags from "./TlsFlags.ts"

export const flags = {
  port: FlagKind.optionalInteger(
    "port",
    "Shared port for HTTP and gRPC, in addition to their own ports; 0 selects a free port",
    { minimum: 0, maximum: 65_535 },
  ),
  address: FlagKind.text("port-address", "address", "Address to listen on for --port", "0.0.0.0"),
  tls: TlsFlags.make("port"),
}

type Values = Command.Command.Config.Infer<typeof flags>

/** Fails if an option of the shared port is given without the port. */
export const options = ({
  port,
  address,
  tls: { use, mutual },
}: Values): Effect.Effect<Pick<ServerOptions, "port">, CliError.UserError> => {
  if (port !== undefined) return Effect.succeed({ port: { host: address ?? "0.0.0.0", port } })
  const [given] = [
    ...(address === undefined ? [] : ["port-address"]),
    ...(use ? ["port-use-ssl"] : []),
    ...(mutual ? ["port-use-ssl-mutual"] : []),
  ]
  if (given === undefined) return Effect.succeed({})
  return Effect.fail(new CliError.UserError({ cause: `--${given} requires --port` }))
}
