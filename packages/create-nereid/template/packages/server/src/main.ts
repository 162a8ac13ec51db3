/**
 * Serves the model until SIGTERM or SIGINT. The environment variables HTTP_PORT, GRPC_PORT and METRICS_PORT override
 * the ports. Prints the model, the ports and a request to try.
 */
import * as NodeRuntime from "@effect/platform-node-shared/NodeRuntime"
import { Server } from "@nereid/server"
import { Shout } from "@nereid-workspace/contract"
import { Config, Effect, Layer } from "effect"
import { ShoutLive } from "./ShoutLive.ts"

const ports = Config.all({
  http: Config.Port("HTTP_PORT").pipe(Config.withDefault(8000)),
  grpc: Config.Port("GRPC_PORT").pipe(Config.withDefault(8001)),
  metrics: Config.Port("METRICS_PORT").pipe(Config.withDefault(8002)),
})

Layer.unwrap(Effect.map(ports, (options) => Server.layer([Shout], { ...options, announce: true }))).pipe(
  Layer.provide(ShoutLive), // without it, this program does not compile
  Layer.launch,
  NodeRuntime.runMain({ teardown: Server.teardown }),
)
