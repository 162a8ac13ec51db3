/**
 * A port that speaks HTTP/1.1, with or without TLS, in a scope: it listens, keeps a failing handler from ending the
 * process, and stops without dropping a response. HttpServer.ts, MetricsServer.ts, GrpcServer.ts and OnePort.ts provide
 * the handlers of requests; GrpcServer.ts and OnePort.ts also provide HTTP/2 on the same port.
 *
 *   leave: `connection: close` in each further response over HTTP/1.1, GOAWAY on open HTTP/2 connections
 *   stop:  no new connections ─► open ones get their responses, and those to their next requests ─► quiet ─► closed
 *                                └─ shortly before `stopTimeoutMillis`: `connection: close` ─► after it: cut off
 */
import type { IncomingMessage, RequestListener, Server, ServerResponse } from "node:http"
import type { Socket } from "node:net"
import { constVoid } from "effect/Function"
import { Clock, Effect, type Scope } from "effect"
import { InvalidRequest } from "@nereid/core/Errors"
import * as MonotonicTime from "@nereid/core/internal/request/MonotonicTime"
import * as DefectGuard from "./DefectGuard.ts"
import { sendErrorAndClose } from "./HttpReply.ts"
import { type Address, type OpenPort, PortSource } from "./PortSource.ts"
import * as LimitReports from "../limit/LimitReports.ts"
import { OpenConnections } from "../limit/OpenConnections.ts"
import * as HalfClosed from "./HalfClosed.ts"
import * as Protocol from "./Protocol.ts"
import * as QuietConnections from "./QuietConnections.ts"
import * as RequestHead from "./RequestHead.ts"
import * as SocketRefusal from "./SocketRefusal.ts"
import type { ServeError } from "../error/ServeError.ts"
import * as Timer from "./Timer.ts"
import * as Tls from "./Tls.ts"

export type { Address }

export type Http1Handler = (request: IncomingMessage, response: ServerResponse, guard: DefectGuard.DefectGuard) => void

/** HTTP/2 handler for connections of a port that negotiate HTTP/2. */
export interface Http2 {
  readonly accept: (socket: Socket) => void
  /** Asks the clients of the open connections to leave; each connection closes once its calls have responses. */
  readonly leave: () => void
  /** The same in a stop. Calls are accepted until the clients know. */
  readonly drain: () => void
  /** Refuses requests that are not complete: the end of a stop is near. */
  readonly lastCall: () => void
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
  /** Maximum time without progress while an HTTP/1.1 client reads a response. Default 60 s. */
  readonly sendTimeoutMillis?: number | undefined
  /** HTTP/2 implementation. Default: none, the port speaks only HTTP/1.1. */
  readonly http2?: Http2 | undefined
  /** Takes reports of limits that acted. Default: no reports. */
  readonly limits?: LimitReports.LimitReports | undefined
  /** Counts the open connections. Default: they are not counted. */
  readonly connections?: OpenConnections | undefined
  /** Aborted when clients should move to another server; the port still accepts connections. Default: never. */
  readonly leaving?: AbortSignal | undefined
  /**
   * Age from which the next response of an HTTP/1.1 connection closes it, in milliseconds, varied by 10 %. Default: no
   * limit.
   */
  readonly maxHttpConnectionAgeMillis?: number | undefined
}

/** Longer than the idle timeout of common proxies and pools, one minute, so that they close first. */
const keepAliveTimeout = 75_000

/** Time before the end of a stop from which responses close their connections; at most half of the whole time. */
const lastCallMillis = 5_000

/** Pipelined requests of a connection that are handled at the same time. The client waits with further ones. */
const maxPipelined = 16

export const make = Effect.fnUntraced(function* (
  handler: Http1Handler,
  options: ListenerOptions,
): Effect.fn.Return<Address, ServeError, Scope.Scope> {
  const { name, maxConnections = 10_000, stopTimeoutMillis = 30_000, sendTimeoutMillis = 60_000, http2 } = options
  const { limits = LimitReports.none, connections: counted = new OpenConnections() } = options
  const { leaving, maxHttpConnectionAgeMillis = Infinity } = options
  const clock = yield* Clock.Clock
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  /** All open sockets, as accepted: below TLS. */
  const connections = new Set<Socket>()
  /** Sockets of HTTP/2 connections. */
  const handedOver = new Set<Socket>()
  /** Responses that have not ended, by connection: over HTTP/1.1 a response waits for those before it. */
  const open: Open = new Map()
  /** Connections that received invalid HTTP while earlier responses were pending. */
  const broken = new WeakSet<Socket>()
  /** Connections with a refused request. What follows it may be a part of its body. */
  const refused = new WeakSet<Socket>()
  /** During a stop. */
  let quiet: QuietConnections.QuietConnections | undefined
  /** At the end of a stop. */
  let isLastCall = false

  const serve = (request: IncomingMessage, response: ServerResponse) => {
    if (refused.has(request.socket)) return
    // After a refusal, a client that sent `expect: 100-continue` may send its body or the next request: close the
    // connection.
    if (isLastCall || request.headers.expect !== undefined) response.shouldKeepAlive = false
    const { socket } = request
    quiet?.active(request)
    const connection = open.get(socket) ?? begin(socket, open, expiry(clock, maxHttpConnectionAgeMillis))
    const { responses, waiting } = connection
    responses.push(response)
    if (leaving?.aborted === true || isOld(connection, clock)) closeAfter(response, connection)
    response.on("close", () => {
      responses.splice(responses.indexOf(response), 1)
      const isLast = isLastCall && responses.length === 0
      if (isLast || (broken.has(socket) && !isAwaited(socket, open))) socket.destroySoon()
      const next = waiting.shift()
      if (next === undefined) return
      if (waiting.length === 0) socket.resume()
      next()
    })
    // Both emit an error if the client disconnects; without a listener, it would end the process.
    request.on("error", constVoid)
    response.on("error", constVoid)
    const refusal = RequestHead.refusal(request)
    if (refusal !== undefined) {
      refused.add(socket)
      return sendErrorAndClose(request, response, new InvalidRequest({ message: refusal }))
    }
    const guard = DefectGuard.make(name, runFork, request, response, () => response.destroy())
    if (responses.length <= maxPipelined) return guard(() => handler(request, response, guard))
    socket.pause()
    waiting.push(() => {
      if (!socket.destroyed) guard(() => handler(request, response, guard))
    })
  }

  const server = yield* create(options, serve, (socket) => {
    handedOver.add(socket)
    socket.on("close", () => handedOver.delete(socket))
    http2?.accept(socket)
    // The connection was accepted before the stop, and its protocol became known only now.
    if (quiet !== undefined) http2?.leave()
  })
  HalfClosed.allow(server)
  server.maxConnections = maxConnections
  limitConnections(server, open, { name, maxConnections, sendTimeoutMillis, limits })
  server.on("checkContinue", serve)
  server.on("connection", (socket: Socket) => {
    connections.add(socket)
    counted.count += 1
    socket.on("close", () => {
      connections.delete(socket)
      counted.count -= 1
    })
  })
  server.on("clientError", (error: NodeJS.ErrnoException, duplex) => {
    const socket = duplex as Socket
    const awaited = isAwaited(socket, open)
    if (error.code === "ERR_HTTP_REQUEST_TIMEOUT") {
      limits.acted("receive_time", `Refused a request to the ${name} port that did not arrive in time`)
    }
    if (error.code === "ECONNRESET" || !socket.writable) socket.destroy()
    // A response would be taken for that of an earlier request.
    else if (awaited) broken.add(socket)
    else if (refused.has(socket)) socket.destroySoon()
    else refuse(SocketRefusal.ofError(error), socket, open)
  })
  server.on("connect", (_, duplex) => {
    const socket = duplex as Socket
    socket.on("error", constVoid)
    if (isAwaited(socket, open)) socket.destroy()
    else refuse(SocketRefusal.ofConnect, socket, open)
  })

  if (leaving !== undefined) {
    const leave = () => {
      for (const connection of open.values()) {
        const last = connection.responses.at(-1)
        if (last !== undefined) closeAfter(last, connection)
      }
      http2?.leave()
    }
    yield* Effect.acquireRelease(
      Effect.sync(() => leaving.addEventListener("abort", leave, { once: true })),
      () => Effect.sync(() => leaving.removeEventListener("abort", leave)),
    )
  }

  const stop = (port: OpenPort) =>
    Effect.callback<void>((resume) => {
      // Below TLS, a connection has another socket than above it.
      const sockets = function* () {
        const above = new Map([...open.keys(), ...handedOver].map((socket) => [peer(socket), socket]))
        for (const socket of connections) yield above.get(peer(socket)) ?? socket
      }
      const isBusy = (socket: Socket) => handedOver.has(socket) || (open.get(socket)?.responses ?? []).length > 0
      const cutOff = () => {
        server.closeAllConnections()
        http2?.cutOff()
      }
      const timer = Timer.start(cutOff, stopTimeoutMillis)
      const lastCall = Timer.start(
        () => {
          isLastCall = true
          http2?.lastCall()
          for (const { responses } of open.values()) for (const response of responses) response.shouldKeepAlive = false
        },
        stopTimeoutMillis - Math.min(lastCallMillis, stopTimeoutMillis / 2),
      )
      quiet = QuietConnections.close(sockets, isBusy)
      // Node would destroy the idle ones.
      server.closeIdleConnections = constVoid
      port.close(() => {
        clearTimeout(timer)
        clearTimeout(lastCall)
        quiet?.stop()
        resume(Effect.void)
      })
      http2?.drain()
    })
  const openPort = yield* PortSource
  const port = yield* Effect.acquireRelease(openPort(server, name, options), stop)
  return port.address
})

/** Closes connections whose client does not read, and reports connections beyond the limit. */
const limitConnections = (
  server: Server,
  open: Open,
  { name, maxConnections, sendTimeoutMillis, limits }: ConnectionLimits,
): void => {
  server.on("drop", (connection) => {
    const client = connection?.remoteAddress ?? "a client"
    limits.acted(
      "connections",
      `Closed a new connection of ${client} to the ${name} port: ${maxConnections} connections are open`,
    )
  })
  // Called without activity on the socket; a write that makes progress is activity.
  server.setTimeout(Math.min(sendTimeoutMillis, Timer.maxDelay), (socket) => {
    const { responses } = open.get(socket) ?? none
    // Pools open connections in advance, before any request.
    if (responses === undefined) return
    if (responses.length === 0) return void socket.destroy()
    const isUnread = responses.some((response) => response.writableEnded || response.writableLength > 0)
    if (!isUnread && socket.readableEnded && responses.every(HalfClosed.isSilent)) return void socket.destroy()
    if (!isUnread) return
    const client = socket.remoteAddress ?? "a client that has disconnected"
    limits.acted(
      "send_time",
      `Closed a connection of ${client} to the ${name} port: it has not read its response in time`,
    )
    socket.destroy()
  })
}

interface ConnectionLimits {
  readonly name: string
  readonly maxConnections: number
  readonly sendTimeoutMillis: number
  readonly limits: LimitReports.LimitReports
}

/** Identifies a connection by the remote address and port, which are the same below TLS and above it. */
const peer = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`

/**
 * Creates the Node server. `serve` takes HTTP/1.1 requests, `handOver` takes HTTP/2 connections if the port supports
 * them.
 */
const create = Effect.fnUntraced(function* (
  { name, tls, http2, greetingTimeoutMillis = 60_000, limits = LimitReports.none }: ListenerOptions,
  serve: RequestListener,
  handOver: (socket: Socket) => void,
): Effect.fn.Return<Server, ServeError, Scope.Scope> {
  // RequestHead.ts checks the host.
  const options = { keepAliveTimeout, noDelay: true, requireHostHeader: false }
  const onGreetingTimeout = ({ remoteAddress }: Socket) => {
    const client = remoteAddress ?? "a client that has disconnected"
    limits.acted(
      "connection_greeting",
      `Closed a connection of ${client} to the ${name} port: it has sent nothing in time`,
    )
  }
  if (tls === undefined) {
    // An import of the module reads all of its exports. One of them loads undici, in 60 ms and 17 MB.
    const server = process.getBuiltinModule("node:http").createServer(options, serve)
    if (http2) Protocol.divert(server, "connection", greetingTimeoutMillis, handOver, onGreetingTimeout)
    return server
  }
  const { credentials, follow } = yield* Tls.load(name, tls)
  const mutual = tls.mutual === true
  const server = process.getBuiltinModule("node:https").createServer(
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
  if (http2) Protocol.divert(server, "secureConnection", greetingTimeoutMillis, handOver, onGreetingTimeout)
  yield* follow((changed) => server.setSecureContext(changed))
  // Node's listener would respond to a client without a connection.
  server.removeAllListeners("tlsClientError")
  server.on("tlsClientError", (_, socket) => void socket.destroy())
  return server
})

/**
 * Responses by connection, in arrays that live as long as the connection. In one table of all responses, they would
 * outlive their requests: a replaced table refers to its successor, so old tables keep all responses until a full
 * collection.
 */
type Open = Map<Socket, PipelinedResponses>

interface PipelinedResponses {
  readonly responses: Array<ServerResponse>
  /** Handlers of requests beyond `maxPipelined`. */
  readonly waiting: Array<() => void>
  /** Monotonic time from which the connection is old, in milliseconds. */
  readonly expiry: number
  /** The response that `closeAfter` has chosen. */
  closing: ServerResponse | undefined
}

const none: Partial<PipelinedResponses> = {}

const begin = (socket: Socket, open: Open, expiry: number): PipelinedResponses => {
  const responses: PipelinedResponses = { responses: [], waiting: [], expiry, closing: undefined }
  open.set(socket, responses)
  HalfClosed.watch(socket, responses.responses)
  socket.on("close", () => open.delete(socket))
  // Node resumes the socket at the end of each request that it has parsed.
  socket.on("resume", () => {
    if (responses.waiting.length > 0) socket.pause()
  })
  return responses
}

const expiry = (clock: Clock.Clock, age: number): number =>
  age === Infinity ? Infinity : MonotonicTime.millis(clock) + age * (0.9 + Math.random() / 5)

const isOld = (connection: PipelinedResponses, clock: Clock.Clock): boolean =>
  connection.expiry !== Infinity && MonotonicTime.millis(clock) >= connection.expiry

/**
 * Closes the connection after its last response, with `connection: close` in its head. Without effect on a response
 * whose head is sent: a client that was not told would send its next request into the closing connection.
 */
const closeAfter = (last: ServerResponse, connection: PipelinedResponses): void => {
  const { closing } = connection
  // A pipelined request has followed.
  if (closing !== undefined && closing !== last && !closing.headersSent) closing.shouldKeepAlive = true
  connection.closing = last.shouldKeepAlive ? last : undefined
  last.shouldKeepAlive = false
}

/** Whether a complete request has no response yet. */
const isAwaited = (socket: Socket, open: Open): boolean =>
  open.get(socket)?.responses.some(({ req }) => req.complete) === true

/** Responds to bytes that are not a request. If a response has already begun, the socket is destroyed instead. */
const refuse = (refusal: SocketRefusal.Refusal, socket: Socket, open: Open): void => {
  const responses = open.get(socket)?.responses ?? []
  const isResponding = responses.some((response) => response.socket === socket && response.headersSent)
  if (isResponding) socket.destroy()
  else SocketRefusal.send(socket, refusal)
}
