/** The flags of the gRPC port, and the server's options that they are. */
import type { ServerOptions } from "@nereid/server/Server"
import type { Command } from "effect/cli"
import * as FlagKind from "./FlagKind.ts"
import * as RestrictionFlag from "./RestrictionFlag.ts"
import * as TlsFlags from "./TlsFlags.ts"

export const flags = {
  allow: FlagKind.boolean("allow-grpc", "Serve gRPC, Connect and gRPC-web on their own port", true),
  address: FlagKind.text("grpc-address", "address", "Address to listen on for gRPC", "0.0.0.0"),
  port: FlagKind.port("grpc-port", "gRPC", 8001),
  maxMessageSize: FlagKind.integer("grpc-max-message-size", "Maximum size of a message, in bytes", 256 * 2 ** 20, {
    minimum: 1,
    maximum: 2 ** 31 - 1,
  }),
  compression: FlagKind.choice(
    "grpc-infer-response-compression-level",
    "Compression level of inference responses, for clients that accept compression",
    "none",
    ["none", "low", "medium", "high"],
  ),
  forward: FlagKind.text(
    "grpc-header-forward-pattern",
    "regex",
    "Request metadata to forward as parameters, as a regular expression",
  ),
  restricted: RestrictionFlag.make("grpc-restricted-protocol", "grpc", "metadata (triton-grpc-protocol-key: value)"),
  tls: TlsFlags.make("grpc"),
}

type Values = Command.Command.Config.Infer<typeof flags>

export const options = ({ allow, address, port, maxMessageSize, compression, forward, restricted }: Values) =>
  ({
    grpc: allow && { host: address ?? "0.0.0.0", port },
    maxMessageSize,
    responseCompression: compression,
    forwardHeaders: forward === undefined ? {} : { grpc: forward },
    restrictedApis: { grpc: restricted },
  }) satisfies ServerOptions
