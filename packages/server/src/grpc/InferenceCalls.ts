/**
 * The calls that bypass Connect: plain ModelInfer and ModelStreamInfer, as nearly all calls are. Connect handles
 * gRPC-Web, calls with compression in either direction, calls without permission for inference, and calls with an
 * `expect` header.
 */
import { constFalse, constVoid } from "effect/Function"
import { InvalidRequest } from "@nereid/core/Errors"
import * as GrpcContentType from "@nereid/core/internal/grpc/GrpcContentType"
import * as GrpcTimeout from "@nereid/core/internal/grpc/GrpcTimeout"
import { GRPCInferenceService } from "@nereid/protocol/grpc_service"
import type { Call, CallHandler, CallHeaders, CallStream } from "./Call.ts"
import * as CallStatus from "./CallStatus.ts"
import * as ResponseCompression from "./ResponseCompression.ts"
import { StreamCall } from "./StreamCall.ts"
import { type GrpcCallOptions, UnaryCall } from "./UnaryCall.ts"
import type { ForwardedHeaders } from "../dispatch/ForwardedHeaders.ts"
import type { CallRecord, CallRecords } from "../log/CallRecord.ts"
import { errorMode } from "./InferStream.ts"
import * as RequestPreparation from "../gateway/RequestPreparation.ts"
import type { RestrictedApis } from "../gateway/RestrictedApis.ts"
import * as MonotonicTime from "@nereid/core/internal/request/MonotonicTime"

export interface InferenceOptions extends GrpcCallOptions {
  /** Undefined if no header becomes a parameter. */
  readonly forward: ForwardedHeaders | undefined
  readonly records: CallRecords
  readonly restrictedApis: RestrictedApis
  readonly responseCompression: ResponseCompression.ResponseCompression
}

export const make = (options: InferenceOptions): CallHandler => {
  const { forward, records, restrictedApis, responseCompression } = options
  const { lateReading } = options.gateway
  const guard = restrictedApis("inference")
  const compresses = responseCompression !== "none"
  return {
    handles: (headers) =>
      isInference(headers[":path"]) &&
      isPlain(headers) &&
      (guard === undefined || guard.permits(headers[guard.header])) &&
      !(compresses && ResponseCompression.isAccepted(headers)),
    begin: (headers, stream) => {
      const isStream = headers[":path"] === modelStreamInfer
      const record = records.begin(isStream ? undefined : "GRPC")
      const timeout = headers["grpc-timeout"]
      const milliseconds = timeout === undefined ? undefined : GrpcTimeout.parse(String(timeout))
      const { lag } = stream
      const waited = Math.max(lateReading.waited(), lag)
      const late = isStream ? undefined : lateReading.refusal(waited, milliseconds, lag > 0)
      if (late !== undefined) return refuse(stream, CallStatus.fromError(late), record)
      const prepare = RequestPreparation.make(forward, record, headers, Object.entries)
      const deadline = milliseconds === undefined ? undefined : MonotonicTime.millis() + milliseconds - waited
      const call = isStream
        ? new StreamCall(options, stream, { deadline, prepare, record, endsAtError: headers[errorMode] === "true" })
        : new UnaryCall(options, stream, { deadline, prepare, record })
      if (timeout !== undefined && milliseconds === undefined) {
        const message = `invalid grpc-timeout '${String(timeout)}'`
        call.fail(CallStatus.fromError(new InvalidRequest({ message })))
      }
      return call
    },
  }
}

/**
 * Refuses a call before its message has come, after what its socket has brought with it: a caller that has cancelled
 * the call already gets no answer. A client on node:http2 ends the connection after thousands of such answers.
 */
const refuse = (stream: CallStream, status: CallStatus.CallStatus, record: CallRecord | undefined): Call => {
  let code = "CANCELLED"
  let isClosed = false
  queueMicrotask(() => {
    if (isClosed) return
    code = CallStatus.name(status.code)
    stream.fail(status)
  })
  const onClose = () => {
    isClosed = true
    record?.end(modelInfer.slice(1), code)
  }
  return { onData: constFalse, onEnd: constVoid, onDrain: constVoid, onClose }
}

const { typeName, method } = GRPCInferenceService

const modelInfer = `/${typeName}/${method.modelInfer.name}`

const modelStreamInfer = `/${typeName}/${method.modelStreamInfer.name}`

const isInference = (path: CallHeaders[string]): boolean => path === modelInfer || path === modelStreamInfer

const isPlain = (headers: CallHeaders): boolean => {
  const encoding = headers["grpc-encoding"]
  const type = headers["content-type"]
  return (
    headers[":method"] === "POST" &&
    headers["expect"] === undefined &&
    (encoding === undefined || encoding === "identity") &&
    GrpcContentType.isPlain(String(type))
  )
}
