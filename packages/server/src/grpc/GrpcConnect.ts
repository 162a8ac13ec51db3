/**
 * Handles the requests of the gRPC port with Connect, over HTTP/2 and HTTP/1.1: all RPCs and protocols, except those
 * that GrpcHttp2.ts handles first. GrpcRoutes.ts implements the RPCs.
 */
import { constVoid } from "effect/Function"
import type { IncomingHttpHeaders, OutgoingHttpHeaders, ServerResponse } from "node:http"
import type { Http2ServerResponse } from "node:http2"
import { connectNodeAdapter } from "@connectrpc/connect-node"
import * as GrpcContentType from "@nereid/core/internal/grpc/GrpcContentType"
import { Unsupported } from "@nereid/core/Errors"
import { decodeMessage, encodeMessage } from "@nereid/core/internal/grpc/GrpcStatus"
import * as GrpcTimeout from "@nereid/core/internal/grpc/GrpcTimeout"
import { GRPCInferenceService } from "@nereid/protocol/grpc_service"
import { ServerReflection } from "@nereid/protocol/reflection"
import { ServerReflection as ServerReflectionAlpha } from "@nereid/protocol/reflection_v1alpha"
import type { BrowserAccess } from "../gateway/BrowserAccess.ts"
import type { CallRecords } from "../log/CallRecord.ts"
import type { CorsPolicy } from "../port/Cors.ts"
import type { ForwardedHeaders } from "../dispatch/ForwardedHeaders.ts"
import type { Gateway } from "../gateway/Gateway.ts"
import * as BinaryRequests from "./BinaryRequests.ts"
import * as CallStatus from "./CallStatus.ts"
import { Envelopes } from "./Envelopes.ts"
import * as GrpcApis from "./GrpcApis.ts"
import * as GrpcCompression from "./GrpcCompression.ts"
import * as GrpcMemory from "./GrpcMemory.ts"
import * as GrpcRecords from "./GrpcRecords.ts"
import * as GrpcRoutes from "./GrpcRoutes.ts"
import * as GrpcWebText from "./GrpcWebText.ts"
import * as HalfOpen from "./HalfOpen.ts"
import { coalesceChunks } from "./coalesceChunks.ts"
import { authorityOf, connectionOf, type IncomingRequest } from "../port/HttpExchange.ts"
import { isEnveloped, limitReceiving } from "./ReceiveLimit.ts"
import type { ResponseCompression } from "./ResponseCompression.ts"
import type { RestrictedApis } from "../gateway/RestrictedApis.ts"
import { isText } from "./TextEnvelopes.ts"
import * as Timer from "../port/Timer.ts"

export interface ConnectOptions {
  readonly gateway: Gateway
  readonly forward: ForwardedHeaders | undefined
  readonly records: CallRecords
  readonly restrictedApis: RestrictedApis
  readonly cors: CorsPolicy | undefined
  readonly browserAccess: BrowserAccess
  readonly responseCompression: ResponseCompression
  readonly maxMessageSize: number
  readonly receiveTimeoutMillis: number
  readonly logDefect: (defect: unknown) => void
}

type NodeResponse = ServerResponse | Http2ServerResponse

export type ConnectHandler = (request: IncomingRequest, response: NodeResponse) => void

export const make = (options: ConnectOptions): ConnectHandler => {
  const { gateway, forward, records, cors, browserAccess, restrictedApis, responseCompression } = options
  const { maxMessageSize, receiveTimeoutMillis: timeout, logDefect } = options
  const connect = connectNodeAdapter({
    routes: GrpcRoutes.make(gateway, forward),
    interceptors: [
      GrpcRecords.recorded(records),
      GrpcRoutes.failures(logDefect),
      GrpcApis.restricted(restrictedApis),
      BinaryRequests.decoded,
    ],
    jsonOptions,
    readMaxBytes: maxMessageSize,
    writeMaxBytes: maxMessageSize,
    contextValues: GrpcMemory.contextValues(gateway.memory),
    requestGate: GrpcCompression.refuseUnknown,
    acceptCompression: GrpcCompression.encodings(responseCompression),
    fallback: unknownMethod,
  })
  return (request, response) => {
    // A caller that breaks off is an error on both, and one without a listener ends the process.
    request.on("error", constVoid)
    response.on("error", constVoid)
    if (cors?.(request, response) === true) return
    const { url = "" } = request
    // Connect parses the authority as a URL, and throws if it is invalid (GrpcBroken.test.ts).
    if (!URL.canParse(url, `http://${authorityOf(request)}`)) return refuse(response, 400)
    const api = GrpcApis.ofPath(url)
    const forbidden = restrictedApis(api) === undefined ? browserAccess(request, api) : undefined
    if (forbidden !== undefined) return forbid(response, forbidden)
    if (request.headers.expect !== undefined) response.writeContinue()
    if ("stream" in request) request.stream.on("finish", () => HalfOpen.closeSoon(request.stream))
    // Node sends no body in response to HEAD.
    if (request.method === "HEAD") Object.assign(request, { method: "GET" })
    // Connect requires a host, which HTTP/1.0 does not.
    if (request.httpVersionMajor === 1) request.headers.host ??= "localhost"
    encodeReadably(response)
    const memory = gateway.memory.of(connectionOf(request))
    limitReceiving(request, { timeout, memory, reports: gateway.limits }, streamPaths.has(url))
    GrpcCompression.restrict(request.headers, url, responseCompression)
    dropEndlessTimeout(request.headers)
    coalesceBody(request)
    GrpcWebText.translate(request, response)
    response.on("close", () => GrpcMemory.release(request))
    try {
      connect(request, response)
    } catch (defect) {
      logDefect(defect)
      refuse(response, 500)
    }
  }
}

/** Unknown fields are ignored, as by default. By default, bytes that are not UTF-8 would be replaced. */
const jsonOptions = { ignoreUnknownFields: true, textDecoder: new TextDecoder("utf-8", { fatal: true }) }

/** Replaces the iterator of a request, from which Connect reads its body. */
const coalesceBody = (request: IncomingRequest): void => {
  const type = request.headers["content-type"]
  const received = { [Symbol.asyncIterator]: request[Symbol.asyncIterator].bind(request) }
  const chunks = isText(type) ? GrpcWebText.decoded(received) : received
  const envelopes = isEnveloped(type) ? new Envelopes() : undefined
  Object.defineProperty(request, Symbol.asyncIterator, { value: () => coalesceChunks(chunks, envelopes) })
}

const streamPaths: ReadonlySet<string> = new Set(
  [GRPCInferenceService, ServerReflection, ServerReflectionAlpha].flatMap(({ typeName, methods }) =>
    methods.filter(({ methodKind }) => methodKind !== "unary").map(({ name }) => `/${typeName}/${name}`),
  ),
)

const refuse = (response: NodeResponse, status: number): void => {
  response.statusCode = status
  response.end()
}

/** In Connect's form. Browsers hide it from pages of other origins. */
const forbid = (response: NodeResponse, message: string): void => {
  response.statusCode = 403
  response.setHeader("content-type", "application/json")
  response.end(JSON.stringify({ code: "permission_denied", message }))
}

/** Connect's timer would fire immediately for a timeout above the limit of Node's timers. */
const dropEndlessTimeout = (headers: IncomingHttpHeaders): void => {
  const { "grpc-timeout": grpc, "connect-timeout-ms": connect } = headers
  if (typeof grpc === "string" && (GrpcTimeout.parse(grpc) ?? 0) > Timer.maxDelay) delete headers["grpc-timeout"]
  if (Number(connect) > Timer.maxDelay && /^[0-9]{1,10}$/.test(String(connect))) delete headers["connect-timeout-ms"]
}

/**
 * The status is in the trailers: grpc-go accepts it in the head only if the head ends the stream, which node's classes
 * do not do. gRPC-Web, and anything over HTTP/1.1, has it in the head.
 */
const unknownMethod: NonNullable<Parameters<typeof connectNodeAdapter>[0]["fallback"]> = (request, response) => {
  const type = request.headers["content-type"]
  const isGrpc = GrpcContentType.isGrpc(type)
  const message = `unknown method ${request.url ?? ""}`
  const status = CallStatus.trailers(CallStatus.fromError(new Unsupported({ message })))
  const hasTrailers = "stream" in response && type?.startsWith(`${GrpcContentType.plain}-web`) !== true
  const head = hasTrailers ? {} : status
  response.writeHead(isGrpc ? 200 : 404, isGrpc ? { "content-type": GrpcContentType.plain, ...head } : {})
  if (isGrpc && hasTrailers) response.addTrailers(status)
  response.end()
}

/**
 * Connect escapes more of a text than the specification does, and grpc-js then shows `unknown model%3A`
 * (GrpcServer.test.ts).
 */
const encodeReadably = (response: NodeResponse): void => {
  const addTrailers = response.addTrailers.bind(response)
  response.addTrailers = (trailers: OutgoingHttpHeaders) => {
    const message = trailers["grpc-message"]
    if (typeof message !== "string") return addTrailers(trailers)
    addTrailers({ ...trailers, "grpc-message": encodeMessage(decodeMessage(message)) })
  }
}
