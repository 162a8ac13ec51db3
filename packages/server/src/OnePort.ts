/**
 * HTTP and gRPC on one port, both over HTTP/1.1 and HTTP/2: for platforms that route one port only, and for HTTP
 * clients that speak HTTP/2. Protocol.ts detects the protocol when a connection opens; the path of a request selects
 * its front end.
 *
 *   connection ─► HttpListener ─┬─ HTTP/2 ──► GrpcHttp2 ─┬─ plain inference ─► UnaryCall, StreamCall
 *                               │                        └─┬─ an RPC ─────────► GrpcConnect ─► GrpcRoutes
 *                               └─ HTTP/1.1 ───────────────┴─ anything else ──► HttpRoutes
 */
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2"
import { constVoid } from "effect/Function"
import { Effect, type Scope } from "effect"
import * as GrpcContentType from "@nereid/core/internal/grpc/GrpcContentType"
import type { Gateway } from "./gateway/Gateway.ts"
import * as GrpcServer from "./grpc/GrpcServer.ts"
import * as HalfOpen from "./grpc/HalfOpen.ts"
import * as HttpServer from "./http/HttpServer.ts"
import * as DefectGuard from "./port/DefectGuard.ts"
import type { IncomingRequest } from "./port/HttpExchange.ts"
import * as HttpListener from "./port/HttpListener.ts"
import type { ServeError } from "./error/ServeError.ts"

export interface OnePortOptions extends Omit<
  HttpListener.ListenerOptions,
  "name" | "http2" | "limits" | "connections" | "leaving"
> {
  readonly http: HttpServer.FrontEndOptions
  readonly grpc: GrpcServer.FrontEndOptions
}

export const make = Effect.fnUntraced(function* (
  gateway: Gateway,
  { http: httpOptions, grpc: grpcOptions, ...listener }: OnePortOptions,
): Effect.fn.Return<HttpListener.Address, ServeError, Scope.Scope> {
  const http = yield* HttpServer.frontEnd(gateway, httpOptions)
  const { greetingTimeoutMillis } = listener
  const grpc = yield* GrpcServer.frontEnd(gateway, { greetingTimeoutMillis, ...grpcOptions })
  const runFork = Effect.runForkWith(yield* Effect.context<never>())

  const http1: HttpListener.Http1Handler = (request, response, guard) => {
    if (isRpc(request)) grpc.handler(request, response)
    else http(request, response, guard)
  }
  const overHttp2 = (request: Http2ServerRequest, response: Http2ServerResponse) => {
    // A caller that breaks off is an error on both, and one without a listener would end the process.
    request.on("error", constVoid)
    response.on("error", constVoid)
    grpc.limit(request)
    request.stream.on("finish", () => {
      // Discards the rest of an unread body. Clients such as curl do not read the response while their sending is
      // blocked.
      request.resume()
      HalfOpen.closeSoon(request.stream)
    })
    const guard = DefectGuard.make("HTTP", runFork, request, response, () => request.stream.destroy())
    guard(() => http(request, response, guard))
  }
  const http2 = grpc.http2((request, response) => {
    if (isRpc(request)) grpc.handler(request, response)
    else overHttp2(request, response)
  })
  const { limits, connections, leaving } = gateway
  return yield* HttpListener.make(http1, { name: "HTTP and gRPC", ...listener, http2, limits, connections, leaving })
})

/** Tells whether a request is an RPC: its path has the form of a method, known or not, or its content type is gRPC. */
const isRpc = ({ url = "", headers }: IncomingRequest): boolean => {
  if (url.startsWith("/v2/")) return false
  return /^\/[\w.]+\.\w+\/\w/.test(url) || GrpcContentType.isGrpc(headers["content-type"])
}
