/** The ports of a version: the supervisor holds them, and passes on their connections. */
import type { IncomingMessage } from "node:http"
import type { Server, Socket } from "node:net"
import { failure, type Open } from "@nereid/server/internal/port/PortSource"
import { Effect } from "effect"
import type { PortId, ToVersion } from "./Message.ts"
import * as Supervision from "./Supervision.ts"

/** Milliseconds for a new connection to send its first request to a version that has been replaced. */
const grace = 1000

interface Connection {
  readonly receivedAt: number
  /** Fulfilled with the first request over HTTP/1.1, or the end of the connection. */
  readonly used: Promise<void>
  readonly use: () => void
}

interface Port {
  readonly server: Server
  readonly connections: Map<Socket, Connection>
  readonly byPeer: Map<string, Connection>
}

export class ReceivedPorts {
  readonly #ports = new Map<PortId, Port>()
  readonly #replies = new Map<PortId, (message: ToVersion) => void>()

  readonly open: Open = (server, name, { host, port }) =>
    Effect.callback((resume) => {
      const id = `${name} ${host}:${port}`
      this.#replies.set(id, (reply) => {
        this.#replies.delete(id)
        if (reply.type === "refused") resume(Effect.fail(failure(name, { host, port }, reply.reason)))
        if (reply.type === "listening")
          resume(Effect.succeed({ address: reply.address, close: this.#begin(id, server) }))
      })
      Supervision.send({ type: "listen", id, address: { host, port } })
    })

  /** Takes the messages about ports. */
  receive(message: ToVersion, socket: Socket | undefined): void {
    if (message.type === "listening" || message.type === "refused") this.#replies.get(message.id)?.(message)
    if (message.type === "connection" && socket !== undefined) this.#accept(message.id, socket)
  }

  /** Waits for the first request of each connection that has arrived recently. */
  async settled(): Promise<void> {
    const connections = [...this.#ports.values()].flatMap((port) => [...port.connections.values()])
    await Promise.all(
      connections.map(({ receivedAt, used }) => withTimeout(used, receivedAt + grace - performance.now())),
    )
  }

  /** Returns the function that closes the port. */
  #begin(id: PortId, server: Server): (closed: () => void) => void {
    const port: Port = { server, connections: new Map(), byPeer: new Map() }
    this.#ports.set(id, port)
    const onRequest = ({ socket }: IncomingMessage) => port.byPeer.get(peer(socket))?.use()
    for (const event of ["request", "checkContinue"]) server.prependListener(event, onRequest)
    // Node starts the timeouts of requests with this event.
    server.emit("listening")
    return (closed) => {
      this.#ports.delete(id)
      server.close()
      void Promise.all([...port.connections.keys()].map(untilClosed)).then(closed)
    }
  }

  #accept(id: PortId, socket: Socket): void {
    const port = this.#ports.get(id)
    if (port === undefined || port.connections.size >= (port.server.maxConnections ?? Infinity)) {
      return void socket.destroy()
    }
    // As the sockets of a server that listens itself.
    socket.allowHalfOpen = true
    socket.setNoDelay(true)
    const { promise, resolve } = Promise.withResolvers<void>()
    const connection = { receivedAt: performance.now(), used: promise, use: resolve }
    const from = peer(socket)
    port.connections.set(socket, connection)
    port.byPeer.set(from, connection)
    socket.once("close", () => {
      port.connections.delete(socket)
      port.byPeer.delete(from)
      resolve()
    })
    port.server.emit("connection", socket)
  }
}

/** Identifies a connection below TLS and above it. */
const peer = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`

const untilClosed = (socket: Socket): Promise<void> =>
  new Promise((resolve) => (socket.closed ? resolve() : void socket.once("close", () => resolve())))

const withTimeout = async (promise: Promise<void>, milliseconds: number): Promise<void> => {
  if (milliseconds <= 0) return
  const { promise: expired, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, milliseconds)
  await Promise.race([promise, expired])
  clearTimeout(timer)
}
