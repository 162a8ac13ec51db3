/** The flags of the server as a whole, and the server's options that they are. */
import type { ServerOptions } from "@nereid/server/Server"
import { Result } from "effect"
import { CliError, type Command } from "effect/cli"
import * as FlagKind from "./FlagKind.ts"
import * as HeaderFlag from "./HeaderFlag.ts"

export const flags = {
  id: FlagKind.text("id", "name", "Server name in the server metadata", "nereid"),
  watch: FlagKind.present(
    "watch",
    "Restart after a change of the module or of a file that it imports; the ports stay open; takes no value",
  ),
  exitTimeout: FlagKind.integer(
    "exit-timeout-secs",
    "Time for requests in flight to finish during a stop, in seconds",
    30,
    {
      minimum: 0,
    },
  ),
  drainDelay: FlagKind.integer(
    "drain-delay",
    "Time at a stop in which the server is not ready and still answers, before it drains, in seconds",
    0,
    { minimum: 0 },
  ),
  handOverSequences: FlagKind.text(
    "hand-over-sequences",
    "url",
    "At a stop, hand live sequences to the server at this HTTP URL, such as http://models-2:8000",
  ),
  handOverHeaders: HeaderFlag.make(
    "hand-over-header",
    "Header to send to the server of --hand-over-sequences, such as the secret of a restricted API; repeatable",
  ),
  strictReadiness: FlagKind.boolean(
    "strict-readiness",
    "Report the server as ready only while all its models are ready",
    true,
  ),
  maxConnections: FlagKind.integer(
    "max-connections",
    "Maximum open connections on each port, except the metrics port",
    10_000,
    {
      minimum: 1,
    },
  ),
  sendTimeout: FlagKind.integer(
    "send-timeout-secs",
    "Maximum time without progress while a client reads a response, in seconds",
    60,
    { minimum: 1 },
  ),
  http2: FlagKind.choice(
    "http2",
    "Implementation of HTTP/2: Nereid's own, or that of Node, which costs more per call",
    "own",
    ["own", "node"],
  ),
  maxInFlightSize: FlagKind.optional(
    "max-in-flight-size",
    {
      takes: "integer",
      description: "Maximum memory for requests in flight and unsent responses, in bytes",
      fallback: "half of the memory",
    },
    FlagKind.parseInteger({ minimum: 1 }),
  ),
  allowSharedMemory: FlagKind.boolean(
    "allow-client-shm",
    "Let clients on this machine pass tensors in system shared memory",
    false,
  ),
  tuneGarbageCollector: FlagKind.boolean(
    "tune-garbage-collector",
    "Tune V8's garbage collector for a server; affects the whole process",
    true,
  ),
}

type Values = Command.Command.Config.Infer<typeof flags>

/** Fails if flags contradict each other. */
export const options = (values: Values): Result.Result<ServerOptions, CliError.UserError> =>
  values.handOverHeaders.length > 0 && values.handOverSequences === undefined
    ? Result.fail(new CliError.UserError({ cause: "--hand-over-header requires --hand-over-sequences" }))
    : Result.succeed(serverOptions(values))

const serverOptions = ({
  id,
  exitTimeout,
  drainDelay,
  strictReadiness,
  handOverSequences: url,
  handOverHeaders: headers,
  maxConnections,
  sendTimeout,
  http2,
  maxInFlightSize,
  allowSharedMemory,
  tuneGarbageCollector,
}: Values): ServerOptions => ({
  ...(id === undefined ? {} : { id }),
  strictReadiness,
  ...(url === undefined
    ? {}
    : { handOverSequences: { url, ...(headers.length > 0 && { headers: Object.fromEntries(headers) }) } }),
  maxConnections,
  ...(maxInFlightSize === undefined ? {} : { maxInFlightSize }),
  allowClientSharedMemory: allowSharedMemory,
  tuneGarbageCollector,
  sendTimeout: `${sendTimeout} seconds`,
  http2,
  drainTimeout: `${exitTimeout} seconds`,
  drainDelay: `${drainDelay} seconds`,
})
