/**
 * Opens the ports of a server. By default a Node server listens itself. `nereid serve --watch` replaces this: one
 * process holds the ports, and passes their connections to the process of the current version.
 */
import { constVoid } from "effect/Function"
import { Context, Effect } from "effect"
import type { Server } from "node:net"
import { ServeError } from "../error/ServeError.ts"

/** Where a port listens. */
export interface Address {
  readonly host: string
  readonly port: number
}

/** A port that accepts connections, and emits them on the Node server. */
export interface OpenPort {
  readonly address: Address
  /** Accepts no more connections. Calls back once the open ones have closed. */
  readonly close: (closed: () => void) => void
}

/** Opens a port for a Node server; `name` is for messages. */
export type Open = (server: Server, name: string, address: Address) => Effect.Effect<OpenPort, ServeError>

/** The failure of a port that cannot be opened. */
export const failure = (name: string, { host, port }: Address, reason: string): ServeError =>
  new ServeError({ message: `cannot listen for ${name} on ${host}:${port}: ${reason}` })

const listen: Open = (server, name, { host, port }) =>
  Effect.callback((resume) => {
    const onError = (error: Error) => resume(Effect.fail(failure(name, { host, port }, error.message)))
    server.once("error", onError)
    server.listen(port, host, () => {
      server.off("error", onError)
      // Later errors are of single connections that could not be accepted.
      server.on("error", constVoid)
      const address = server.address()
      resume(
        address === null || typeof address === "string"
          ? Effect.die("A TCP server has an address. This is a bug.")
          : Effect.succeed({
              address: { host: address.address, port: address.port },
              close: (closed) => void server.close(closed),
            }),
      )
    })
  })

export const PortSource = Context.Reference<Open>("@nereid/server/PortSource", { defaultValue: () => listen })
