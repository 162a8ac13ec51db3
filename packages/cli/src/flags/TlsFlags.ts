/** The flags of one port's certificates. Triton has them for gRPC only; those of HTTP are named after them. */
import type { ServerOptions } from "@nereid/server/Server"
import { Effect } from "effect"
import { CliError, type Command } from "effect/cli"
import * as FlagKind from "./FlagKind.ts"

type Tls = NonNullable<NonNullable<ServerOptions["tls"]>["grpc"]>

/** Prefix of the flag names. */
type Port = keyof NonNullable<ServerOptions["tls"]>

export const make = (port: Port) => ({
  use: FlagKind.boolean(`${port}-use-ssl`, "Enable TLS", false),
  mutual: FlagKind.boolean(`${port}-use-ssl-mutual`, "Require a client certificate; implies TLS", false),
  cert: FlagKind.text(`${port}-server-cert`, "path", "Server certificate file, in PEM; reloaded when it changes"),
  key: FlagKind.text(`${port}-server-key`, "path", "Private key file of the server certificate, in PEM"),
  ca: FlagKind.text(`${port}-root-cert`, "path", "CA certificate file to verify client certificates, in PEM"),
})

type Values = Command.Command.Config.Infer<ReturnType<typeof make>>

/** Returns the TLS options. Fails if flags contradict each other. */
export const options = (
  port: Port,
  { use, mutual, cert, key, ca }: Values,
): Effect.Effect<Tls | undefined, CliError.UserError> => {
  const refuse = (message: string) => Effect.fail(new CliError.UserError({ cause: message }))
  if (!use && !mutual) {
    // Certificates without the flag for TLS are an error, not plaintext.
    const given = [
      ["server-cert", cert],
      ["server-key", key],
      ["root-cert", ca],
    ].find(([, path]) => path !== undefined)
    if (given !== undefined) return refuse(`--${port}-${given[0]} requires --${port}-use-ssl=true`)
    return Effect.undefined
  }
  if (cert === undefined || key === undefined) {
    return refuse(`--${port}-use-ssl requires --${port}-server-cert and --${port}-server-key`)
  }
  if (mutual && ca === undefined) return refuse(`--${port}-use-ssl-mutual requires --${port}-root-cert`)
  return Effect.succeed({ cert, key, mutual, ...(ca === undefined ? {} : { ca }) })
}
