/**
 * The ports of `nereid serve --watch`: they stay open while versions come and go. A connection goes to the current
 * version; without one, it waits.
 */
import { createServer, type Server, type Socket } from "node:net"
import type { Address } from "@nereid/server/internal/port/PortSource"
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"
import type { PortId, ToVersion } from "./Message.ts"

/** Connections that may wait for a version; further ones are closed at once. */
const maxWaiting = 1024

/** Takes connections. Returns false if it has ended. */
export type Receiver = (id: PortId, socket: Socket) => boolean

export class HeldPorts {
  readonly #servers = new Map<PortId, Promise<Server>>()
  readonly #waiting: Array<{ readonly id: PortId; readonly socket: Socket }> = []
  #receiver: Receiver | undefined

  /** Opens a port, unless it is open; the reply is for the version that asked. */
  async open(id: PortId, address: Address): Promise<ToVersion> {
    const opening = this.#servers.get(id) ?? this.#listen(id, address)
    this.#servers.set(id, opening)
    try {
      const found = (await opening).address()
      if (found === null || typeof found === "string") throw new Error("the port has been closed")
      return { type: "listening", id, address: { host: found.address, port: found.port } }
    } catch (error) {
      this.#servers.delete(id)
      return { type: "refused", id, reason: errorMessage(error) }
    }
  }

  /** Sends all connections there from now on, those that wait first. Undefined lets them wait. */
  sendTo(receiver: Receiver | undefined): void {
    this.#receiver = receiver
    for (const { id, socket } of this.#waiting.splice(0)) this.#deliver(id, socket)
  }

  close(): void {
    for (const server of this.#servers.values()) void server.then((open) => open.close()).catch(() => {})
    for (const { socket } of this.#waiting.splice(0)) socket.destroy()
    this.#servers.clear()
  }

  #deliver(id: PortId, socket: Socket): void {
    if (this.#receiver?.(id, socket) === true) return
    if (this.#waiting.length < maxWaiting) this.#waiting.push({ id, socket })
    else socket.destroy()
  }

  #listen(id: PortId, { host, port }: Address): Promise<Server> {
    const { promise, resolve, reject } = Promise.withResolvers<Server>()
    // Paused, so that this process reads nothing of a connection that it passes on.
    const server = createServer({ pauseOnConnect: true, allowHalfOpen: true }, (socket) => this.#deliver(id, socket))
    server.once("error", reject).listen(port, host, () => {
      server.off("error", reject)
      // Later errors are of single connections that could not be accepted.
      server.on("error", () => {})
      resolve(server)
    })
    return promise
  }
}
