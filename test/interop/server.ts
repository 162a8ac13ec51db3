/**
 * The servers that the clients talk to, as a program: the same models behind several servers with options of their own. It
 * prints one line with all ports once they listen, and ends with SIGTERM.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Server } from "@nereid/server"
import { Console, Context, Effect, Layer } from "effect"
import { layer, models } from "./models.ts"

const restrictions = [
  { apis: ["metadata", "inference", "model-config"], key: "user-key", value: "a secret" },
  { apis: ["statistics"], key: "admin-key", value: "another" },
] as const

const servers: { readonly [name: string]: Server.ServerOptions } = {
  /** All as it is by default. */
  plain: {},
  /** With what is off by default. */
  open: {
    forwardHeaders: { http: "^x-forwarded-", grpc: "^x-forwarded-" },
    allowClientSharedMemory: true,
    responseCompression: "medium",
  },
  /** All but health asks for a secret, statistics for another. */
  restricted: { restrictedApis: { http: restrictions, grpc: restrictions } },
}

const free = { host: "127.0.0.1", port: 0 }

const start = Effect.fnUntraced(function* (options: Server.ServerOptions) {
  const built = yield* Layer.build(Server.layer(models, { http: free, grpc: free, metrics: free, ...options }))
  const { http, grpc, metrics } = Context.get(built, Server.Server)
  return { http: http?.port, grpc: grpc?.port, metrics: metrics?.port }
})

Layer.effectDiscard(
  Effect.gen(function* () {
    const started = yield* Effect.forEach(Object.entries(servers), ([name, options]) =>
      Effect.map(start(options), (ports) => [name, ports] as const),
    )
    yield* Console.log(`serving ${JSON.stringify(Object.fromEntries(started))}`)
  }),
).pipe(Layer.provide(layer), Layer.launch, NodeRuntime.runMain({ teardown: Server.teardown }))
