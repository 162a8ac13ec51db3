/** Connections to the server under test that cases share, one after another and at the same time, as clients' pools do. */
import { Context, Effect, Layer } from "effect"
import { GrpcConnection } from "./GrpcConnection.ts"
import { HttpConnection } from "./HttpConnection.ts"
import { ServerUnderTest } from "./ServerUnderTest.ts"

type Which = keyof ServerUnderTest["Service"]

interface Closable {
  readonly isOpen: boolean
  readonly close: () => void
}

export class Connections extends Context.Service<
  Connections,
  {
    readonly servers: ServerUnderTest["Service"]
    readonly http: (which: Which) => Promise<HttpConnection>
    readonly grpc: (which: Which) => Promise<GrpcConnection>
  }
>()("conformance/Connections") {
  static readonly layer = Layer.effect(
    Connections,
    Effect.gen(function* () {
      const servers = yield* ServerUnderTest
      const [http, grpc] = [new Map<number, Promise<HttpConnection>>(), new Map<number, Promise<GrpcConnection>>()]
      yield* Effect.addFinalizer(() =>
        Effect.promise(async () => {
          for (const connection of await Promise.all([...http.values(), ...grpc.values()])) connection.close()
        }),
      )
      return Connections.of({
        servers,
        http: (which) => kept(http, servers[which].http, HttpConnection.open),
        grpc: (which) => kept(grpc, servers[which].grpc, GrpcConnection.open),
      })
    }),
  ).pipe(Layer.provide(ServerUnderTest.layer))
}

/** The connection to a port; a new one where there is none or it has been closed. */
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
