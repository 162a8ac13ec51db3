/**
 * A port that speaks HTTP/1.1, in a scope: it listens, keeps a failing handler from ending the process, and stops without
 * dropping an answer. What it answers is the handler's: HttpServer.ts and MetricsServer.ts bring one each.
 *
 *   stop:  no new connections ─► idle ones close ─► answers in flight go out with `connection: close` ─► closed
 *                                                  └─ after `stopTimeoutMillis` they are cut off
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import type { Socket } from "node:net"
import { Effect, type Scope } from "effect"
import { sendText } from "./HttpReply.ts"
import { ServeError } from "./ServeError.ts"
import * as Timer from "./Timer.ts"

/** Runs what a later event calls for a request, so that an exception in it becomes an answer. */
export type Guard = (run: () => void) => void

export type Handler = (request: IncomingMessage, response: ServerResponse, guard: Guard) => void

export interface ListenerOptions {
  /** What listens, for messages. */
  readonly name: string
  readonly host: string
  /** 0 for any free port. */
  readonly port: number
  /** Connections at one time; one more is closed at once. Default 10 000. */
  readonly maxConnections?: number | undefined
  /** How long a stop waits for answers in flight. Default 30 s. */
  readonly stopTimeoutMillis?: number | undefined
}

export interface Address {
  readonly host: string
  readonly port: number
}

/** Longer than the minute after which common proxies and pools give up an idle connection, so that they close first. */
const keepAliveTimeout = 75_000

export const make = Effect.fnUntraced(function* (
  handler: Handler,
  options: ListenerOptions,
): Effect.fn.Return<Address, ServeError, Scope.Scope> {
  const { maxConnections = 10_000, stopTimeoutMillis = 30_000 } = options
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  const connections = new Set<Socket>()
  /** What is not answered yet, by its connection; a response has none while it waits for those before it. */
  const open = new Map<ServerResponse, Socket>()
  /** Connections on which something came that is no HTTP, behind requests that are yet to be answered. */
  const broken = new WeakSet<Socket>()
  let stopping = false

  const serve = (request: IncomingMessage, response: ServerResponse) => {
    // Who asked whether to send a body may or may not send one behind a refusal: what comes next could be either.
    if (stopping || request.headers.expect !== undefined) response.shouldKeepAlive = false
    const { socket } = request
    open.set(response, socket)
    response.on("close", () => {
      open.delete(response)
      if (broken.has(socket) && !isAwaited(socket, open)) socket.destroySoon()
    })
    // A caller that breaks off is an error on both, and one without a listener would end the process.
    request.on("error", nothing)
    response.on("error", nothing)
    const guard: Guard = (run) => {
      try {
        run()
      } catch (defect) {
        runFork(Effect.logError(`The ${options.name} front end failed on ${request.method} ${request.url}`, defect))
        if (response.headersSent) response.destroy()
        else sendText(response, 500, "internal error")
      }
    }
    guard(() => handler(request, response, guard))
  }

  // Not httpAllowHalfOpen: a caller that is gone and one that only has sent everything look the same until something is
  // written, and the former is to give up its place in the queue (HttpServer.test.ts).
  const server = createServer({ keepAliveTimeout, noDelay: true }, serve)
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
    // An answer of ours would be taken for the one to a request before it.
    else if (awaited) broken.add(socket)
    else refuse(error, socket, open)
  })

  const stop = Effect.callback<void>((resume) => {
    stopping = true
    for (const response of open.keys()) response.shouldKeepAlive = false
    const cutOff = Timer.start(() => server.closeAllConnections(), stopTimeoutMillis)
    server.close(() => {
      clearTimeout(cutOff)
      resume(Effect.void)
    })
    // Not closeIdleConnections: it spares connections that have never asked anything, as pools open them in advance.
    const busy = new Set(open.values())
    for (const socket of connections) if (!busy.has(socket)) socket.destroy()
  })
  yield* Effect.acquireRelease(listen(server, options), () => stop)
  const address = server.address()
  if (address === null || typeof address === "string") {
    return yield* Effect.die("A TCP server has an address. This is a bug.")
  }
  return { host: address.address, port: address.port }
})

const listen = (server: Server, { name, host, port }: ListenerOptions): Effect.Effect<void, ServeError> =>
  Effect.callback((resume) => {
    const onError = (error: Error) =>
      resume(Effect.fail(new ServeError({ message: `cannot listen for ${name} on ${host}:${port}: ${error.message}` })))
    server.once("error", onError)
    server.listen(port, host, () => {
      server.off("error", onError)
      // Later errors are of single connections that could not be accepted.
      server.on("error", nothing)
      resume(Effect.void)
    })
  })

/** Whether there is a request that has come completely and is not answered. */
const isAwaited = (socket: Socket, open: ReadonlyMap<ServerResponse, Socket>): boolean =>
  open.entries().some(([{ req }, its]) => its === socket && req.complete)

/** What is no HTTP. Where an answer is on its way already, another one in its middle would only confuse. */
const refuse = (error: NodeJS.ErrnoException, socket: Socket, open: ReadonlyMap<ServerResponse, Socket>): void => {
  const answering = open.keys().some((response) => response.socket === socket && response.headersSent)
  if (answering) return void socket.destroy()
  const [status, message] = refusals.get(error.code ?? "") ?? ["400 Bad Request", `malformed HTTP: ${error.message}`]
  const body = JSON.stringify({ error: message })
  const headers = `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close`
  socket.end(`HTTP/1.1 ${status}\r\n${headers}\r\n\r\n${body}`)
}

const refusals: ReadonlyMap<string, readonly [string, string]> = new Map([
  ["HPE_HEADER_OVERFLOW", ["431 Request Header Fields Too Large", "the request's headers are too large"]],
  ["ERR_HTTP_REQUEST_TIMEOUT", ["408 Request Timeout", "the request did not arrive in time"]],
])

const nothing = () => {}
