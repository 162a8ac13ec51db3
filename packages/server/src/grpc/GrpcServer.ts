/**
 * The gRPC port: gRPC over HTTP/2; Connect and gRPC-Web over HTTP/2 and HTTP/1.1. This module connects the parts.
 *
 *   connection ─► HttpListener ─┬─ HTTP/2 ────► GrpcHttp2 ─┬─ plain inference ─► UnaryCall, StreamCall
 *                               │                          └─┐
 *                               └─ HTTP/1.1 ─────────────────┴─► GrpcConnect ─► GrpcRoutes
 */
import type { Http2ServerRequest } from "node:http2"
import { Effect, type Scope } from "effect"
import * as CallRecord from "../log/CallRecord.ts"
import type * as Cors from "../port/Cors.ts"
import { ReceiveTimeout } from "./ReceiveTimeout.ts"
import * as ForwardedHeaders from "../dispatch/ForwardedHeaders.ts"
import * as Spans from "../trace/Spans.ts"
import type { Gateway } from "../gateway/Gateway.ts"
import type { ResponseCompression } from "./GrpcCompression.ts"
import * as GrpcConnect from "./GrpcConnect.ts"
import * as GrpcHttp2 from "./GrpcHttp2.ts"
import * as InferenceCalls from "./InferenceCalls.ts"
import * as HttpListener from "../port/HttpListener.ts"
import * as Keepalive from "./Keepalive.ts"
import { ReceiveBudget } from "../port/ReceiveBudget.ts"
import { limitReceiving } from "./ReceiveLimit.ts"
import * as RestrictedApis from "../gateway/RestrictedApis.ts"
import { ServeError } from "../error/ServeError.ts"
import type { Tls } from "../port/Tls.ts"

/** Limits, features and access rules of the gRPC front end. */
export interface FrontEndOptions {
  /** The most bytes of a message, either way. Default 256 MiB; at most 2 GiB - 1, which is the protocol's own limit. */
  readonly maxMessageSize?: number
  /** How long a request may take to arrive completely. Default 300 s, which is also what Node gives one over HTTP. */
  readonly receiveTimeoutMillis?: number
  /** Bytes that requests hold together until they have arrived completely. Default 1 GiB, or 4 messages if that is more. */
  readonly maxIncompleteSize?: number
  /** Of the answers to inferences, where the caller accepts it. Default "none". */
  readonly responseCompression?: ResponseCompression | undefined
  /**
   * Keepalive of HTTP/2 connections: pings, limits on the client's pings, and maximum age. Defaults are in
   * Keepalive.ts.
   */
  readonly keepalive?: Keepalive.Keepalive | undefined
  /** Whether plain inference, unary and streams, is answered before Connect. Default true; false is for comparison. */
  readonly fastInference?: boolean
  /** Metadata that become parameters of their request, as a pattern of their names (ForwardedHeaders.ts). Default none. */
  readonly forwardHeaders?: string | undefined
  /** APIs that require a secret header. Default: none. */
  readonly restrictedApis?: ReadonlyArray<RestrictedApis.Restriction> | undefined
  /** Default: none, browsers keep pages of other origins away. */
  readonly cors?: Cors.CorsPolicy | undefined
}

export interface GrpcServerOptions extends FrontEndOptions {
  readonly host?: string
  /** 0 for any free port. */
  readonly port: number
  /** Connections at one time; one more is closed at once. Default 10 000. */
  readonly maxConnections?: number
  /** How long a new connection may take for its TLS handshake, or to show which protocol it speaks. Default 60 s. */
  readonly greetingTimeoutMillis?: number
  /** How long a stop waits for calls in flight, and for callers that do not take their answers. Default 30 s. */
  readonly stopTimeoutMillis?: number
  /** Default: none, the port speaks plaintext. */
  readonly tls?: Tls | undefined
}

/** For whatever port its requests come to. */
export interface FrontEnd {
  /** Answers what is no plain inference over HTTP/2, which is before it. */
  readonly handler: GrpcConnect.ConnectHandler
  /** The connections of one port that speak HTTP/2; `handler` takes the requests that it does not handle itself. */
  readonly http2: (handler: GrpcHttp2.RequestHandler) => HttpListener.Http2
  /** Cuts off a request over HTTP/2 that is not for `answer` as if it were. */
  readonly limit: (request: Http2ServerRequest) => void
}

const maxMessageLength = 2 ** 31 - 1

export const make = Effect.fnUntraced(function* (
  gateway: Gateway,
  options: GrpcServerOptions,
): Effect.fn.Return<HttpListener.Address, ServeError, Scope.Scope> {
  const { host = "0.0.0.0", port, maxConnections, greetingTimeoutMillis, stopTimeoutMillis, tls, ...others } = options
  const { handler, http2 } = yield* frontEnd(gateway, others)
  const listener = { host, port, maxConnections, greetingTimeoutMillis, stopTimeoutMillis, tls, http2: http2(handler) }
  return yield* HttpListener.make(handler, { name: "gRPC", ...listener })
})

export const frontEnd = Effect.fnUntraced(function* (
  gateway: Gateway,
  options: FrontEndOptions,
): Effect.fn.Return<FrontEnd, ServeError> {
  const { maxMessageSize = 256 * 1024 * 1024, receiveTimeoutMillis = 300_000, fastInference = true } = options
  const { responseCompression = "none", maxIncompleteSize = Math.max(2 ** 30, 4 * maxMessageSize) } = options
  if (!Number.isInteger(maxMessageSize) || maxMessageSize < 1 || maxMessageSize > maxMessageLength) {
    const message = `maxMessageSize is ${maxMessageSize}, expected an integer from 1 to ${maxMessageLength} (2 GiB - 1)`
    return yield* new ServeError({ message })
  }
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  const logDefect = (defect: unknown) => void runFork(Effect.logError("The gRPC front end failed on a call", defect))
  const forwarded = yield* Effect.fromResult(ForwardedHeaders.make(options.forwardHeaders, "forwardHeaders.grpc"))
  const forward = Spans.joining(gateway.spans, forwarded)
  const restrictedApis = yield* Effect.fromResult(RestrictedApis.make(options.restrictedApis ?? [], "grpc"))
  const keepalive = yield* Keepalive.settings(options.keepalive)
  const records = yield* CallRecord.make(gateway)
  const receiveBudget = new ReceiveBudget(maxIncompleteSize)
  const limits = { maxMessageSize, receiveBudget }
  const common = { gateway, ...limits, forward, records, restrictedApis, responseCompression, logDefect }
  const receiveTimeout = new ReceiveTimeout(receiveTimeoutMillis)
  const calls = fastInference ? InferenceCalls.make({ ...common, receiveTimeout }) : undefined
  return {
    handler: GrpcConnect.make({ ...common, receiveTimeoutMillis, cors: options.cors }),
    limit: (request) => limitReceiving(request, receiveTimeoutMillis, receiveBudget, false),
    http2: (handler) => GrpcHttp2.make({ maxMessageSize, keepalive, calls, handler }),
  }
})
