/**
 * The gRPC port: gRPC over HTTP/2; Connect and gRPC-Web over HTTP/2 and HTTP/1.1. This module connects the parts.
 *
 *   connection ─► HttpListener ─┬─ HTTP/2 ────► GrpcHttp2 ─┬─ plain inference ─► UnaryCall, StreamCall
 *                               │                          └─┐
 *                               └─ HTTP/1.1 ─────────────────┴─► GrpcConnect ─► GrpcRoutes
 */
import type { Http2ServerRequest } from "node:http2"
import { Effect, type Scope } from "effect"
import * as BrowserAccess from "../gateway/BrowserAccess.ts"
import * as CallRecord from "../log/CallRecord.ts"
import type * as Cors from "../port/Cors.ts"
import { ReceiveTimeout } from "./ReceiveTimeout.ts"
import * as ForwardedHeaders from "../dispatch/ForwardedHeaders.ts"
import * as Spans from "../trace/Spans.ts"
import type { Gateway } from "../gateway/Gateway.ts"
import type { ResponseCompression } from "./ResponseCompression.ts"
import * as EngineHttp2 from "./EngineHttp2.ts"
import * as ConnectOnDemand from "./ConnectOnDemand.ts"
import type * as GrpcConnect from "./GrpcConnect.ts"
import * as GrpcHttp2 from "./GrpcHttp2.ts"
import * as InferenceCalls from "./InferenceCalls.ts"
import * as HttpListener from "../port/HttpListener.ts"
import * as Keepalive from "./Keepalive.ts"
import { limitTime } from "./ReceiveLimit.ts"
import { SendTimeout } from "./SendTimeout.ts"
import { Standstill } from "../limit/Standstill.ts"
import * as RestrictedApis from "../gateway/RestrictedApis.ts"
import { ServeError } from "../error/ServeError.ts"
import type { Tls } from "../port/Tls.ts"

/** Limits, features and access rules of the gRPC front end. */
export interface FrontEndOptions {
  /** Maximum size of a message in either direction, in bytes. Default 256 MiB; the protocol's limit is 2 GiB - 1. */
  readonly maxMessageSize?: number
  /** Maximum time to receive a complete request. Default 300 s, like Node's limit for HTTP. */
  readonly receiveTimeoutMillis?: number
  /**
   * Maximum time for the TLS handshake and protocol detection of a connection, and then for the settings of an HTTP/2
   * client. Default 60 s.
   */
  readonly greetingTimeoutMillis?: number | undefined
  /** Maximum time without progress while a client reads a response. Default 60 s. */
  readonly sendTimeoutMillis?: number | undefined
  /** Compression of inference responses, for clients that accept it. Default "none". */
  readonly responseCompression?: ResponseCompression | undefined
  /**
   * Keepalive of HTTP/2 connections: pings, limits on the client's pings, and maximum age. Defaults are in
   * Keepalive.ts.
   */
  readonly keepalive?: Keepalive.Keepalive | undefined
  /** Handles plain inference, unary and streaming, before Connect. Default true; false is for comparison. */
  readonly fastInference?: boolean
  /**
   * Implementation of HTTP/2: "own" for Nereid's, "node" for node:http2. Default "own", unless the environment
   * variable NEREID_HTTP2 is "node".
   */
  readonly http2?: "node" | "own" | undefined
  /** Pattern of the metadata names that are forwarded as request parameters (ForwardedHeaders.ts). Default: none. */
  readonly forwardHeaders?: string | undefined
  /** APIs that require a secret header. Default: none. */
  readonly restrictedApis?: ReadonlyArray<RestrictedApis.Restriction> | undefined
  /** CORS of the port. Default: none. */
  readonly cors?: Cors.CorsPolicy | undefined
  /** Requests of browsers that are refused. Default: those of a server without options. */
  readonly browserAccess?: BrowserAccess.BrowserAccess | undefined
}

export interface GrpcServerOptions extends FrontEndOptions {
  readonly host?: string
  /** Port to listen on; 0 picks a free port. */
  readonly port: number
  /** Maximum open connections; further connections are closed at once. Default 10,000. */
  readonly maxConnections?: number
  /**
   * Maximum time that a stop waits for calls in flight, and for clients that do not read their responses. Default 30 s.
   */
  readonly stopTimeoutMillis?: number
  /** Age from which a response over HTTP/1.1 closes its connection. Default: no limit. */
  readonly maxHttpConnectionAgeMillis?: number | undefined
  /** TLS files. Default: none, the port is plaintext. */
  readonly tls?: Tls | undefined
}

/** The gRPC front end, for any port. */
export interface FrontEnd {
  /** Handles requests that the HTTP/2 implementation does not handle itself. */
  readonly handler: GrpcConnect.ConnectHandler
  /** Makes the HTTP/2 implementation of one port; `handler` takes the requests that it does not handle itself. */
  readonly http2: (handler: GrpcHttp2.RequestHandler) => HttpListener.Http2
  /** Applies the receive timeout to an HTTP/2 request that another handler takes. */
  readonly limit: (request: Http2ServerRequest) => void
}

const maxMessageLength = 2 ** 31 - 1

export const make = Effect.fnUntraced(function* (
  gateway: Gateway,
  options: GrpcServerOptions,
): Effect.fn.Return<HttpListener.Address, ServeError, Scope.Scope> {
  const { host = "0.0.0.0", port, maxConnections, tls } = options
  const { greetingTimeoutMillis, stopTimeoutMillis, sendTimeoutMillis, maxHttpConnectionAgeMillis } = options
  const { handler, http2 } = yield* frontEnd(gateway, options)
  const { limits, connections, leaving } = gateway
  const times = { greetingTimeoutMillis, stopTimeoutMillis, sendTimeoutMillis, maxHttpConnectionAgeMillis }
  const listener = { host, port, maxConnections, tls, ...times, limits, connections, leaving }
  return yield* HttpListener.make(handler, { name: "gRPC", ...listener, http2: http2(handler) })
})

export const frontEnd = Effect.fnUntraced(function* (
  gateway: Gateway,
  options: FrontEndOptions,
): Effect.fn.Return<FrontEnd, ServeError> {
  const { maxMessageSize = 256 * 1024 * 1024, receiveTimeoutMillis = 300_000, fastInference = true } = options
  const { responseCompression = "none", sendTimeoutMillis = 60_000, greetingTimeoutMillis = 60_000 } = options
  const { cors, browserAccess = BrowserAccess.standard } = options
  const { http2 = process.env["NEREID_HTTP2"] === "node" ? "node" : "own" } = options
  if (!Number.isInteger(maxMessageSize) || maxMessageSize < 1 || maxMessageSize > maxMessageLength) {
    const message = `maxMessageSize is ${maxMessageSize}, expected an integer from 1 to ${maxMessageLength} (2 GiB - 1)`
    return yield* new ServeError({ message })
  }
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  const logDefect = (defect: unknown) => void runFork(Effect.logError("The gRPC front end failed on a call", defect))
  const forwarded = yield* Effect.fromResult(ForwardedHeaders.make(options.forwardHeaders, "forwardHeaders.grpc"))
  const forward = Spans.joining(gateway, forwarded)
  const restrictedApis = yield* Effect.fromResult(RestrictedApis.make(options.restrictedApis ?? [], "grpc"))
  const keepalive = yield* Keepalive.settings(options.keepalive)
  const records = yield* CallRecord.make(gateway)
  const common = { gateway, maxMessageSize, forward, records, restrictedApis, responseCompression, logDefect }
  const receiveTimeout = new ReceiveTimeout(receiveTimeoutMillis)
  const sessionLimits = { sendTimeout: new SendTimeout(sendTimeoutMillis), standstill: new Standstill() }
  const limits = { reports: gateway.limits, memory: gateway.memory, ...sessionLimits }
  const calls = fastInference ? InferenceCalls.make({ ...common, receiveTimeout }) : undefined
  return {
    handler: ConnectOnDemand.make({ ...common, receiveTimeoutMillis, cors, browserAccess }),
    limit: (request) => limitTime(request, { timeout: receiveTimeoutMillis, reports: gateway.limits }),
    http2: (handler) => {
      const [onDrained, onLastCall] = [gateway.endStreams, gateway.refuse]
      const common = { maxMessageSize, keepalive, greetingTimeoutMillis, limits, calls, handler }
      const http2Options = { ...common, onDrained, onLastCall }
      return http2 === "node" ? GrpcHttp2.make(http2Options) : EngineHttp2.make(http2Options)
    },
  }
})
