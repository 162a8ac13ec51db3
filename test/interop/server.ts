/**
 * The server that the clients talk to, as a program: it prints one line with its ports once it listens, and ends with
 * SIGTERM.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Server } from "@nereid/server"
import { Console, Effect, Layer } from "effect"
import { layer, models } from "./models.ts"

const free = { host: "127.0.0.1", port: 0 }

const announced = Layer.effectDiscard(
  Effect.flatMap(Server.Server, ({ http, grpc, metrics }) =>
    Console.log(`serving ${JSON.stringify({ http: http?.port, grpc: grpc?.port, metrics: metrics?.port })}`),
  ),
)

announced.pipe(
  Layer.provide(Server.layer(models, { http: free, grpc: free, metrics: free })),
  Layer.provide(layer),
  Layer.launch,
  NodeRuntime.runMain({ teardown: Server.teardown }),
)
