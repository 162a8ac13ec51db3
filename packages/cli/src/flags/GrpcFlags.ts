/** The flags of the gRPC port, and the server's options that they are. */
import type { ServerOptions } from "@nereid/server/Server"
import type { Command } from "effect/cli"
import * as FlagKind from "./FlagKind.ts"
import * as RestrictionFlag from "./RestrictionFlag.ts"
import * as TlsFlags from "./TlsFlags.ts"

export const flags = {
  allow: FlagKind.boolean("allow-grpc", "Whether to serve gRPC, Connect and gRPC-web on a port of their own", true),
  address: FlagKind.text("grpc-address", "address", "Address for gRPC to listen on (0.0.0.0)"),
  port: FlagKind.port("grpc-port", "gRPC", 8001),
  maxMessageSize: FlagKind.integer("grpc-max-message-size", "The largest message, in bytes", 256 * 2 ** 20, {
    minimum: 1,
    maximum: 2 ** 31 - 1,
  }),
  compression: FlagKind.choice(
    "grpc-infer-response-compression-level",
    "How answers to inferences are compressed, where the caller accepts it",
    "none",
    ["none", "low", "medium", "high"],
  ),
  forward: FlagKind.text("grpc-header-forward-pattern", "regex", "Metadata that becomes parameters of its requests"),
  restricted: RestrictionFlag.make("grpc-restricted-protocol", "grpc", "the metadata triton-grpc-protocol-key"),
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
