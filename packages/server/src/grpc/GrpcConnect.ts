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
import type { CallRecords } from "../log/CallRecord.ts"
import type { CorsPolicy } from "../port/Cors.ts"
import type { ForwardedHeaders } from "../dispatch/ForwardedHeaders.ts"
import type { Gateway } from "../gateway/Gateway.ts"
import * as CallStatus from "./CallStatus.ts"
import { Envelopes } from "./Envelopes.ts"
import * as GrpcApis from "./GrpcApis.ts"
import * as GrpcCompression from "./GrpcCompression.ts"
import * as GrpcRecords from "./GrpcRecords.ts"
import * as GrpcRoutes from "./GrpcRoutes.ts"
import * as HalfOpen from "./HalfOpen.ts"
import { coalesceChunks } from "./coalesceChunks.ts"
import type { ReceiveBudget } from "../port/ReceiveBudget.ts"
import type { IncomingRequest } from "../port/HttpExchange.ts"
import { isEnveloped, limitReceiving } from "./ReceiveLimit.ts"
import type { RestrictedApis } from "../gateway/RestrictedApis.ts"
import * as Timer from "../port/Timer.ts"

export interface ConnectOptions {
  readonly gateway: Gateway
  readonly forward: ForwardedHeaders | undefined
  readonly records: CallRecords
  readonly restrictedApis: RestrictedApis
  readonly cors: CorsPolicy | undefined
  readonly responseCompression: GrpcCompression.ResponseCompression
  readonly maxMessageSize: number
  readonly receiveTimeoutMillis: number
  readonly receiveBudget: ReceiveBudget
  readonly logDefect: (defect: unknown) => void
}

type NodeResponse = ServerResponse | Http2ServerResponse

export type ConnectHandler = (request: IncomingRequest, response: NodeResponse) => void

export const make = (options: ConnectOptions): ConnectHandler => {
  const { gateway, forward, records, cors, restrictedApis, responseCompression } = options
  const { maxMessageSize, receiveTimeoutMillis, receiveBudget, logDefect } = options
  const connect = connectNodeAdapter({
    routes: GrpcRoutes.make(gateway, forward),
    interceptors: [GrpcRecords.recorded(records), GrpcRoutes.failures(logDefect), GrpcApis.restricted(restrictedApis)],
    readMaxBytes: maxMessageSize,
    writeMaxBytes: maxMessageSize,
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
    if (!URL.canParse(url, `http://${authority(request)}`)) return refuse(response, 400)
    if (request.headers.expect !== undefined) response.writeContinue()
    if ("stream" in request) request.stream.on("finish", () => HalfOpen.closeSoon(request.stream))
    encodeReadably(response)
    limitReceiving(request, receiveTimeoutMillis, receiveBudget, streamPaths.has(url))
    GrpcCompression.restrict(request.headers, url, responseCompression)
    dropEndlessTimeout(request.headers)
    coalesceBody(request)
    try {
      connect(request, response)
    } catch (defect) {
      logDefect(defect)
      refuse(response, 500)
    }
  }
}

/** Replaces the iterator of a request, from which Connect reads its body. */
const coalesceBody = (request: IncomingRequest): void => {
  const chunks = { [Symbol.asyncIterator]: request[Symbol.asyncIterator].bind(request) }
  const envelopes = isEnveloped(request.headers["content-type"]) ? new Envelopes() : undefined
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

/** Connect's timer for one that is longer than a timer can be would fire at once. */
const dropEndlessTimeout = (headers: IncomingHttpHeaders): void => {
  const { "grpc-timeout": grpc, "connect-timeout-ms": connect } = headers
  if (typeof grpc === "string" && (GrpcTimeout.parse(grpc) ?? 0) > Timer.maxDelay) delete headers["grpc-timeout"]
  if (Number(connect) > Timer.maxDelay && /^[0-9]{1,10}$/.test(String(connect))) delete headers["connect-timeout-ms"]
}

/** Connect parses the authority as a URL, and throws if it is invalid (GrpcBroken.test.ts). */
const authority = (request: IncomingRequest): string | undefined =>
  "authority" in request ? request.authority : request.headers.host

const unknownMethod: NonNullable<Parameters<typeof connectNodeAdapter>[0]["fallback"]> = (request, response) => {
  const isGrpc = GrpcContentType.isGrpc(request.headers["content-type"])
  const message = `unknown method ${request.url ?? ""}`
  const status = CallStatus.trailers(CallStatus.fromError(new Unsupported({ message })))
  response.writeHead(isGrpc ? 200 : 404, isGrpc ? { "content-type": GrpcContentType.plain, ...status } : {})
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
