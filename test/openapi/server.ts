/** The server under test as a program. It prints one line with its port once it listens, and ends with SIGTERM. */
import * as NodeRuntime from "@effect/platform-node-shared/NodeRuntime"
import { Server } from "@nereid/server"
import { Console, Effect, Layer } from "effect"
import { layer, models, routes } from "./models.ts"

const free = { host: "127.0.0.1", port: 0 }

Layer.effectDiscard(Effect.flatMap(Server.Server, ({ http }) => Console.log(`serving on port ${http?.port}`))).pipe(
  Layer.provide(
    Server.layer(models, {
      http: free,
      grpc: false,
      metrics: false,
      allowClientSharedMemory: true,
      routes,
      dashboard: true,
    }),
  ),
  Layer.provide(layer),
  Layer.launch,
  NodeRuntime.runMain({ teardown: Server.teardown }),
)
