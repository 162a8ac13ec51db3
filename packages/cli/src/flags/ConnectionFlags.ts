/** Flags of commands that call a server: request headers and TLS. */
import { readFileSync } from "node:fs"
import type { Command } from "effect/cli"
import * as FlagKind from "./FlagKind.ts"
import * as HeaderFlag from "./HeaderFlag.ts"

export const flags = {
  headers: HeaderFlag.make("header", "Header to send with every request, as metadata over gRPC; repeatable", ["H"]),
  ca: FlagKind.text("tls-ca", "path", "CA certificate file to verify the server, in PEM", "the CA list of Node"),
  cert: FlagKind.text("tls-cert", "path", "Client certificate file, in PEM"),
  key: FlagKind.text("tls-key", "path", "Private key file of the client certificate, in PEM"),
  insecure: FlagKind.boolean("tls-insecure", "Accept any server certificate without verification", false),
}

type Values = Command.Command.Config.Infer<typeof flags>

/**
 * Reads the TLS options.
 * @throws Error if flags contradict each other, or a file is unreadable
 */
export const tls = ({ ca, cert, key, insecure }: Omit<Values, "headers">, secure: boolean, url: string) => {
  if (!secure && (ca ?? cert ?? key) !== undefined) {
    throw new Error(`--tls-ca, --tls-cert and --tls-key require https:// or grpcs:// in ${url}`)
  }
  if ((cert === undefined) !== (key === undefined)) throw new Error("--tls-cert and --tls-key must be given together")
  return {
    ...(ca === undefined ? {} : { ca: readFileSync(ca) }),
    ...(cert === undefined ? {} : { cert: readFileSync(cert) }),
    ...(key === undefined ? {} : { key: readFileSync(key) }),
    rejectUnauthorized: !insecure,
  }
}
