/**
 * A unary call on a stream of node:http2. Another HTTP/2 implementation would stand in here; what a call does is in
 * GrpcUnary.ts.
 */
import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from "node:http2"
import { GRPCInferenceService } from "@nereid/protocol/grpc_service"
import type { CallRecords } from "../log/CallRecord.ts"
import type { ForwardedHeaders } from "../ForwardedHeaders.ts"
import * as Preparation from "../Preparation.ts"
import * as GrpcStatus from "./GrpcStatus.ts"
import { UnaryCall, type UnaryOptions } from "./GrpcUnary.ts"
import * as HalfOpen from "./HalfOpen.ts"

export interface StreamOptions extends UnaryOptions {
  /** Undefined where no header becomes a parameter. */
  readonly forward: ForwardedHeaders | undefined
  readonly records: CallRecords
}

export const serveUnary = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, options: StreamOptions): void => {
  // A stream that the caller resets emits an error; without a listener that ends the process.
  stream.on("error", nothing)
  const { forward, records } = options
  const record = records.begin("GRPC")
  let status = "CANCELLED"
  const timeout = headers["grpc-timeout"]
  const call = new UnaryCall(
    options,
    {
      reply: (frame) => {
        if (isGone(stream)) return
        status = "OK"
        stream.on("wantTrailers", sendTrailers)
        stream.respond(replyHeaders, replyOptions)
        stream.end(frame)
      },
      fail: (failure) => {
        if (isGone(stream)) return
        status = GrpcStatus.name(failure.code)
        stream.respond({ ...replyHeaders, ...GrpcStatus.headers(failure) }, { endStream: true })
        HalfOpen.closeSoon(stream)
      },
    },
    {
      timeout: Array.isArray(timeout) ? timeout.join() : timeout,
      prepare: Preparation.make(forward, record, () => Object.entries(headers)),
    },
  )
  let unwanted = 0
  stream.on("data", (chunk: Uint8Array) => {
    call.onData(chunk)
    // A reset at once would overtake the answer; a caller that goes on for so long does not read it anyway.
    if (stream.headersSent && (unwanted += chunk.length) > patience) stream.close(constants.NGHTTP2_NO_ERROR)
  })
  stream.on("end", () => call.onEnd())
  stream.on("close", () => call.onClose())
  if (record !== undefined) stream.on("close", () => record.end(modelInfer, status))
}

const modelInfer = `${GRPCInferenceService.typeName}/${GRPCInferenceService.method.modelInfer.name}`

/** Bytes that are read and dropped after the answer. */
const patience = 16 * 1024 * 1024

const nothing = () => {}

const isGone = (stream: ServerHttp2Stream): boolean => stream.destroyed || stream.closed || stream.headersSent

const replyHeaders = { ":status": 200, "content-type": "application/grpc+proto" }

const replyOptions = { waitForTrailers: true }

const sendTrailers = function (this: ServerHttp2Stream): void {
  this.sendTrailers({ "grpc-status": "0" })
}
