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
    "Milliseconds in which nothing came, until the server asks whether the caller is there",
    7_200_000,
    positive,
  ),
  timeout: FlagKind.integer("grpc-keepalive-timeout", "Milliseconds in which that must be answered", 20_000, positive),
  permitWithoutCalls: FlagKind.boolean(
    "grpc-keepalive-permit-without-calls",
    "Whether connections without calls are asked and may ask, too",
    false,
  ),
  maxPingsWithoutData: FlagKind.integer(
    "grpc-http2-max-pings-without-data",
    "How often the server asks without having sent anything else between, 0 for any number",
    2,
    any,
  ),
  minReceiveInterval: FlagKind.integer(
    "grpc-http2-min-recv-ping-interval-without-data",
    "Milliseconds that callers must wait between two pings, where nothing is sent to them between",
    300_000,
    any,
  ),
  maxPingStrikes: FlagKind.integer(
    "grpc-http2-max-ping-strikes",
    "How many pings may come too soon, 0 for any number",
    2,
    any,
  ),
  maxAge: FlagKind.integer(
    "grpc-max-connection-age",
    "Milliseconds that a connection may last, 0 for no limit",
    0,
    any,
  ),
  maxAgeGrace: FlagKind.optionalInteger(
    "grpc-max-connection-age-grace",
    "Milliseconds that calls on a connection that is too old may still take (no limit)",
    any,
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
