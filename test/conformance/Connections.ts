/**
 * Connections to the server under test that cases share, one after another and at the same time, as clients' pools do.
 */
import { Context, Effect, Layer } from "effect"
import { GrpcConnection } from "./GrpcConnection.ts"
import { HttpConnection } from "./HttpConnection.ts"
import { HttpOverHttp2 } from "./HttpOverHttp2.ts"
import { ServerUnderTest } from "./ServerUnderTest.ts"

type ServerName = keyof ServerUnderTest["Service"]

interface Closable {
  readonly isOpen: boolean
  readonly close: () => void
}

export class Connections extends Context.Service<
  Connections,
  {
    readonly servers: ServerUnderTest["Service"]
    /** To its port of HTTP; or to that of its metrics. */
    readonly http: (server: ServerName, port?: "http" | "metrics") => Promise<HttpConnection>
    readonly grpc: (server: ServerName) => Promise<GrpcConnection>
    /** To a server with everything on one port. */
    readonly http2: (server: ServerName) => Promise<HttpOverHttp2>
  }
>()("conformance/Connections") {
  static readonly #toServers = Layer.effect(
    Connections,
    Effect.gen(function* () {
      const servers = yield* ServerUnderTest
      const http = new Map<number, Promise<HttpConnection>>()
      const grpc = new Map<number, Promise<GrpcConnection>>()
      const http2 = new Map<number, Promise<HttpOverHttp2>>()
      yield* Effect.addFinalizer(() =>
        Effect.promise(async () => {
          const all = [...http.values(), ...grpc.values(), ...http2.values()]
          for (const connection of await Promise.all(all)) connection.close()
        }),
      )
      return Connections.of({
        servers,
        http: (server, port = "http") => kept(http, servers[server][port], HttpConnection.open),
        grpc: (server) => kept(grpc, servers[server].grpc, GrpcConnection.open),
        http2: (server) => kept(http2, servers[server].http, HttpOverHttp2.open),
      })
    }),
  )

  static readonly layer = Connections.#toServers.pipe(Layer.provide(ServerUnderTest.layer))

  /** For cases of the repository, too. */
  static readonly layerWithRepository = Connections.#toServers.pipe(Layer.provide(ServerUnderTest.layerWithRepository))

  /** For tests of queues in a repository, too. */
  static readonly layerWithQueues = Connections.#toServers.pipe(Layer.provide(ServerUnderTest.layerWithQueues))
}

/** The connection to a port; opens a new one if none is open. */
const kept = async <C extends Closable>(
  connections: Map<number, Promise<C>>,
  port: number,
  open: (port: number) => Promise<C>,
): Promise<C> => {
  const known = connections.get(port)
  if (known !== undefined && (await known).isOpen) return known
  const opened = open(port)
  connections.set(port, opened)
  return opened
}
