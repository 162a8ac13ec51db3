/**
 * The flags of idle, dead and old gRPC connections, and the server's options that they are. All times in milliseconds.
 */
import type { ServerOptions } from "@nereid/server/Server"
import type { Command } from "effect/cli"
import * as FlagKind from "./FlagKind.ts"

const any = { minimum: 0 }
const positive = { minimum: 1 }

export const flags = {
  time: FlagKind.integer(
    "grpc-keepalive-time",
    "Time without received data before the server sends a ping, in milliseconds",
    7_200_000,
    positive,
  ),
  timeout: FlagKind.integer(
    "grpc-keepalive-timeout",
    "Timeout for the acknowledgement of a ping, in milliseconds",
    20_000,
    positive,
  ),
  permitWithoutCalls: FlagKind.boolean(
    "grpc-keepalive-permit-without-calls",
    "Allow pings on connections without calls, from the server and from clients",
    false,
  ),
  maxPingsWithoutData: FlagKind.integer(
    "grpc-http2-max-pings-without-data",
    "Maximum pings from the server without data in between; 0 for no limit",
    2,
    any,
  ),
  minReceiveInterval: FlagKind.integer(
    "grpc-http2-min-recv-ping-interval-without-data",
    "Minimum interval between pings of a client without data in between, in milliseconds",
    300_000,
    any,
  ),
  maxPingStrikes: FlagKind.integer(
    "grpc-http2-max-ping-strikes",
    "Maximum early pings of a client before its connection is closed; 0 for no limit",
    2,
    any,
  ),
  maxAge: FlagKind.integer(
    "grpc-max-connection-age",
    "Maximum age of a connection, in milliseconds; 0 for no limit",
    0,
    any,
  ),
  maxAgeGrace: FlagKind.optional(
    "grpc-max-connection-age-grace",
    {
      takes: "integer",
      description: "Time for calls to finish on a connection past its maximum age, in milliseconds",
      fallback: "no limit",
    },
    FlagKind.parseInteger(any),
  ),
}

type Values = Command.Command.Config.Infer<typeof flags>

export const options = ({ maxAge, maxAgeGrace, ...settings }: Values): Pick<ServerOptions, "keepalive"> => ({
  keepalive: {
    ...settings,
    ...(maxAge === 0 ? {} : { maxConnectionAge: maxAge }),
    ...(maxAgeGrace === undefined ? {} : { maxConnectionAgeGrace: maxAgeGrace }),
  },
})
