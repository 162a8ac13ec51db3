/**
 * The servers for the clients, as a program: the same models behind several servers with different options. It prints
 * one line with all ports once they listen, and ends with SIGTERM.
 */
import { join } from "node:path"
import * as NodeRuntime from "@effect/platform-node-shared/NodeRuntime"
import { Server } from "@nereid/server"
import { Console, Context, Effect, Layer } from "effect"
import * as Certificates from "./Certificates.ts"
import { layer, models } from "./models.ts"

const restrictions = [
  { apis: ["metadata", "inference", "model-config"], key: "user-key", value: "a secret" },
  { apis: ["statistics"], key: "admin-key", value: "another" },
] as const

const forwarded = "^(x-forwarded-.*|authorization)$"

const servers = (certificates: string): { readonly [name: string]: Server.ServerOptions } => {
  const tls = { cert: join(certificates, "server.crt"), key: join(certificates, "server.key") }
  const mutual = { ...tls, ca: join(certificates, "authority.crt"), mutual: true }
  return {
    /** All as it is by default. */
    plain: {},
    /** With what is off by default. */
    open: {
      forwardHeaders: { http: forwarded, grpc: forwarded },
      allowClientSharedMemory: true,
      responseCompression: "medium",
    },
    /** Its connections do not get old. */
    brief: { keepalive: { maxConnectionAge: "200 millis" } },
    /** Every API but health requires a secret; statistics requires another. */
    restricted: { restrictedApis: { http: restrictions, grpc: restrictions } },
    secure: { tls: { http: tls, grpc: tls } },
    mutual: { tls: { http: mutual, grpc: mutual } },
  }
}

const free = { host: "127.0.0.1", port: 0 }

const start = Effect.fnUntraced(function* (options: Server.ServerOptions) {
  const built = yield* Layer.build(Server.layer(models, { http: free, grpc: free, metrics: free, ...options }))
  const { http, grpc, metrics } = Context.get(built, Server.Server)
  return { http: http?.port, grpc: grpc?.port, metrics: metrics?.port }
})

Layer.effectDiscard(
  Effect.gen(function* () {
    const certificates = yield* Certificates.write
    const started = yield* Effect.forEach(Object.entries(servers(certificates)), ([name, options]) =>
      Effect.map(start(options), (ports) => [name, ports] as const),
    )
    yield* Console.log(`serving ${JSON.stringify({ certificates, servers: Object.fromEntries(started) })}`)
  }),
).pipe(Layer.provide(layer), Layer.launch, NodeRuntime.runMain({ teardown: Server.teardown }))
