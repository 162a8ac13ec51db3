/** The flags of the server as a whole, and the server's options that they are. */
import type { ServerOptions } from "@nereid/server/Server"
import type { Command } from "effect/cli"
import * as FlagKind from "./FlagKind.ts"

export const flags = {
  id: FlagKind.text("id", "name", "The server's name in its metadata (nereid)"),
  exitTimeout: FlagKind.integer("exit-timeout-secs", "Seconds that a stop waits for requests in flight", 30, {
    minimum: 0,
  }),
  strictReadiness: FlagKind.boolean(
    "strict-readiness",
    "Whether the server is ready only while all its models are; else while it serves at all",
    true,
  ),
  maxConnections: FlagKind.integer(
    "max-connections",
    "Connections at one time, on each port but that of metrics",
    10_000,
    {
      minimum: 1,
    },
  ),
  maxInFlightSize: FlagKind.optionalInteger(
    "max-in-flight-size",
    "Bytes of all requests until they are answered; by default half of the memory that there is",
    { minimum: 1 },
  ),
  allowSharedMemory: FlagKind.boolean(
    "allow-client-shm",
    "Whether callers on this machine may pass tensors in system shared memory",
    false,
  ),
  tuneGarbageCollector: FlagKind.boolean(
    "tune-garbage-collector",
    "Whether to tune V8's garbage collector for a server, in the whole process",
    true,
  ),
}

type Values = Command.Command.Config.Infer<typeof flags>

export const options = ({
  id,
  exitTimeout,
  strictReadiness,
  maxConnections,
  maxInFlightSize,
  allowSharedMemory,
  tuneGarbageCollector,
}: Values): ServerOptions => ({
  ...(id === undefined ? {} : { id }),
  strictReadiness,
  maxConnections,
  ...(maxInFlightSize === undefined ? {} : { maxInFlightSize }),
  allowClientSharedMemory: allowSharedMemory,
  tuneGarbageCollector,
  drainTimeout: `${exitTimeout} seconds`,
})
