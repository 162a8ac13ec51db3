/**
 * A port that speaks HTTP/1.1, with or without TLS, in a scope: it listens, keeps a failing handler from ending the
 * process, and stops without dropping a response. HttpServer.ts, MetricsServer.ts, GrpcServer.ts and OnePort.ts provide
 * the handlers of requests; GrpcServer.ts and OnePort.ts also provide HTTP/2 on the same port.
 *
 *   stop:  no new connections ─► idle ones close ─► answers in flight go out with `connection: close` ─► closed
 *                                                  └─ after `stopTimeoutMillis` they are cut off
 */
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from "node:http"
import { createServer as createSecureServer } from "node:https"
import type { Socket } from "node:net"
import { constVoid } from "effect/Function"
import { Effect, type Scope } from "effect"
import * as DefectGuard from "./DefectGuard.ts"
import * as Protocol from "./Protocol.ts"
import { ServeError } from "../error/ServeError.ts"
import * as Timer from "./Timer.ts"
import * as Tls from "./Tls.ts"

export type Http1Handler = (request: IncomingMessage, response: ServerResponse, guard: DefectGuard.DefectGuard) => void

/** HTTP/2 handler for connections of a port that negotiate HTTP/2. */
export interface Http2 {
  readonly accept: (socket: Socket) => void
  /** Accepts no new calls; each connection closes once its calls have responses. */
  readonly drain: () => void
  readonly cutOff: () => void
}

export interface ListenerOptions {
  /** Name of the listener in messages. */
  readonly name: string
  readonly host: string
  /** Port to listen on; 0 picks a free port. */
  readonly port: number
  /** Maximum open connections; further connections are closed at once. Default 10,000. */
  readonly maxConnections?: number | undefined
  /** Maximum time that a stop waits for responses in flight. Default 30 s. */
  readonly stopTimeoutMillis?: number | undefined
  /** TLS files. Default: none, the port is plaintext. */
  readonly tls?: Tls.Tls | undefined
  /** Maximum time for the TLS handshake and protocol detection of a connection. Default 60 s. */
  readonly greetingTimeoutMillis?: number | undefined
  /** HTTP/2 implementation. Default: none, the port speaks only HTTP/1.1. */
  readonly http2?: Http2 | undefined
}

export interface Address {
  readonly host: string
  readonly port: number
}

/** Longer than the idle timeout of common proxies and pools, one minute, so that they close first. */
const keepAliveTimeout = 75_000

export const make = Effect.fnUntraced(function* (
  handler: Http1Handler,
  options: ListenerOptions,
): Effect.fn.Return<Address, ServeError, Scope.Scope> {
  const { name, maxConnections = 10_000, stopTimeoutMillis = 30_000, http2 } = options
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  /** All open sockets, as accepted: below TLS. */
  const connections = new Set<Socket>()
  /** Sockets of HTTP/2 connections. */
  const handedOver = new Set<Socket>()
  /** Responses that have not ended, by connection: over HTTP/1.1 a response waits for those before it. */
  const open: Open = new Map()
  /** Connections that received invalid HTTP while earlier responses were pending. */
  const broken = new WeakSet<Socket>()
  let stopping = false

  const serve = (request: IncomingMessage, response: ServerResponse) => {
    // After a refusal, a client that sent `expect: 100-continue` may send its body or the next request: close the
    // connection.
    if (stopping || request.headers.expect !== undefined) response.shouldKeepAlive = false
    const { socket } = request
    const ofConnection = open.get(socket) ?? begin(socket, open)
    ofConnection.push(response)
    response.on("close", () => {
      ofConnection.splice(ofConnection.indexOf(response), 1)
      const isLast = stopping && ofConnection.length === 0
      if (isLast || (broken.has(socket) && !isAwaited(socket, open))) socket.destroySoon()
    })
    // Both emit an error if the client disconnects; without a listener, it would end the process.
    request.on("error", constVoid)
    response.on("error", constVoid)
    const guard = DefectGuard.make(name, runFork, request, response, () => response.destroy())
    guard(() => handler(request, response, guard))
  }

  // Without httpAllowHalfOpen: it would hide a disconnect until the next write, and the request would keep its place in
  // the queue (HttpServer.test.ts).
  const server = yield* create(options, serve, (socket) => {
    handedOver.add(socket)
    socket.on("close", () => handedOver.delete(socket))
    http2?.accept(socket)
  })
  server.maxConnections = maxConnections
  server.on("checkContinue", serve)
  server.on("connection", (socket: Socket) => {
    connections.add(socket)
    socket.on("close", () => connections.delete(socket))
  })
  server.on("clientError", (error: NodeJS.ErrnoException, duplex) => {
    const socket = duplex as Socket
    const awaited = isAwaited(socket, open)
    const gone = error.code === "ECONNRESET" || !socket.writable || (awaited && socket.readableEnded)
    if (gone) socket.destroy()
    // A response would be taken for that of an earlier request.
    else if (awaited) broken.add(socket)
    else refuse(error, socket, open)
  })

  const stop = Effect.callback<void>((resume) => {
    stopping = true
    for (const responses of open.values()) for (const response of responses) response.shouldKeepAlive = false
    const cutOff = () => {
      server.closeAllConnections()
      http2?.cutOff()
    }
    const timer = Timer.start(cutOff, stopTimeoutMillis)
    server.close(() => {
      clearTimeout(timer)
      resume(Effect.void)
    })
    // closeIdleConnections() is not sufficient: it skips connections without any request, which pools open in advance.
    const responding = [...open].flatMap(([socket, responses]) => (responses.length > 0 ? [socket] : []))
    const busy = new Set([...responding, ...handedOver].map(peer))
    for (const socket of connections) if (!busy.has(peer(socket))) socket.destroy()
    http2?.drain()
  })
  yield* Effect.acquireRelease(listen(server, options), () => stop)
  const address = server.address()
  if (address === null || typeof address === "string") {
    return yield* Effect.die("A TCP server has an address. This is a bug.")
  }
  return { host: address.address, port: address.port }
})

/** Identifies a connection by the remote address and port, which are the same below TLS and above it. */
const peer = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`

/**
 * Creates the Node server. `serve` takes HTTP/1.1 requests, `handOver` takes HTTP/2 connections if the port supports
 * them.
 */
const create = Effect.fnUntraced(function* (
  { name, tls, http2, greetingTimeoutMillis = 60_000 }: ListenerOptions,
  serve: RequestListener,
  handOver: (socket: Socket) => void,
): Effect.fn.Return<Server, ServeError, Scope.Scope> {
  const options = { keepAliveTimeout, noDelay: true }
  if (tls === undefined) {
    const server = createServer(options, serve)
    if (http2) Protocol.divert(server, "connection", greetingTimeoutMillis, handOver)
    return server
  }
  const { credentials, follow } = yield* Tls.load(name, tls)
  const mutual = tls.mutual === true
  const server = createSecureServer(
    {
      ...options,
      ...credentials,
      requestCert: mutual,
      rejectUnauthorized: mutual,
      handshakeTimeout: greetingTimeoutMillis,
      ALPNProtocols: http2 ? Protocol.alpnProtocols : ["http/1.1"],
    },
    serve,
  )
  if (http2) Protocol.divert(server, "secureConnection", greetingTimeoutMillis, handOver)
  yield* follow((changed) => server.setSecureContext(changed))
  // Node's listener would respond to a client without a connection.
  server.removeAllListeners("tlsClientError")
  server.on("tlsClientError", (_, socket) => void socket.destroy())
  return server
})

const listen = (server: Server, { name, host, port }: ListenerOptions): Effect.Effect<void, ServeError> =>
  Effect.callback((resume) => {
    const onError = (error: Error) =>
      resume(Effect.fail(new ServeError({ message: `cannot listen for ${name} on ${host}:${port}: ${error.message}` })))
    server.once("error", onError)
    server.listen(port, host, () => {
      server.off("error", onError)
      // Later errors are of single connections that could not be accepted.
      server.on("error", constVoid)
      resume(Effect.void)
    })
  })

/**
 * Responses by connection, in arrays that live as long as the connection. In one table of all responses, they would
 * outlive their requests: a replaced table refers to its successor, so old tables keep all responses until a full
 * collection.
 */
type Open = Map<Socket, Array<ServerResponse>>

const begin = (socket: Socket, open: Open): Array<ServerResponse> => {
  const responses: Array<ServerResponse> = []
  open.set(socket, responses)
  socket.on("close", () => open.delete(socket))
  return responses
}

/** Whether a complete request has no response yet. */
const isAwaited = (socket: Socket, open: Open): boolean => open.get(socket)?.some(({ req }) => req.complete) === true

/** Responds to bytes that are not HTTP. If a response has already begun, the socket is destroyed instead. */
const refuse = (error: NodeJS.ErrnoException, socket: Socket, open: Open): void => {
  const isResponding = open.get(socket)?.some((response) => response.socket === socket && response.headersSent) === true
  if (isResponding) return void socket.destroy()
  const [status, message] = refusals.get(error.code ?? "") ?? ["400 Bad Request", `malformed HTTP: ${error.message}`]
  const body = JSON.stringify({ error: message })
  const headers = `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close`
  socket.end(`HTTP/1.1 ${status}\r\n${headers}\r\n\r\n${body}`)
}

const refusals: ReadonlyMap<string, readonly [string, string]> = new Map([
  ["HPE_HEADER_OVERFLOW", ["431 Request Header Fields Too Large", "the request's headers are too large"]],
  ["ERR_HTTP_REQUEST_TIMEOUT", ["408 Request Timeout", "the request did not arrive in time"]],
])
