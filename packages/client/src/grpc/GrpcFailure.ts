/**
 * The failed end of a call, from the headers and trailers of its stream or from its connection. Statuses themselves are
 * in core's GrpcStatus.ts.
 */
import { Result } from "effect"
import { GrpcCode } from "@nereid/core/internal/grpc/GrpcCode"
import * as GrpcContentType from "@nereid/core/internal/grpc/GrpcContentType"
import * as GrpcStatus from "@nereid/core/internal/grpc/GrpcStatus"
import { ErrorCode } from "@nereid/http2/internal/frame/ErrorCode"
import type { ResponseHeaders } from "./CallHeaders.ts"
import type { FailureCause } from "../channel/Channel.ts"

export interface GrpcFailure {
  readonly code: number
  readonly message: string
  /** The headers that carried the status; empty if the server reported none. */
  readonly metadata: ResponseHeaders
  /** Absent for a status of the server. */
  readonly cause?: FailureCause
}

/** A failure that no server reported. */
export const failure = (code: number, message: string, cause?: FailureCause): GrpcFailure =>
  cause === undefined ? { code, message, metadata: {} } : { code, message, metadata: {}, cause }

/** The status of trailers, or of headers that are trailers as well; undefined if they carry none. */
export const fromTrailers = (headers: ResponseHeaders): Result.Result<void, GrpcFailure> | undefined => {
  const status = single(headers["grpc-status"])
  if (status === undefined) return undefined
  if (status === "0") return Result.void
  return Result.fail({ ...GrpcStatus.read(status, single(headers["grpc-message"])), metadata: headers })
}

/** The failure of response headers that carry no gRPC status; undefined if they begin a gRPC response. */
export const fromHeaders = (headers: ResponseHeaders): GrpcFailure | undefined => {
  const status = Number(headers[":status"])
  if (status !== 200) {
    return failure(GrpcStatus.codeOfHttpStatus(status), `the server answered with HTTP status ${status}`)
  }
  const type = single(headers["content-type"]) ?? ""
  if (GrpcContentType.isPlain(type)) return undefined
  const message = `the server answered with content-type ${JSON.stringify(type)}, not application/grpc`
  return failure(GrpcCode.UNKNOWN, message)
}

/** The failure of a stream that ended without a status. `error` is its HTTP/2 error code. */
export const unfinished = (error: number | undefined): GrpcFailure => {
  if (error === undefined || error === ErrorCode.NO_ERROR) {
    return failure(GrpcCode.UNAVAILABLE, "the server ended the response without a status", "lost")
  }
  const message = `the server reset the call with HTTP/2 error code ${error}`
  return failure(GrpcStatus.codeOfReset(error), message, "lost")
}

/** The cause of a failure. The server forbids a retry by a pushback that is not a number of milliseconds (gRFC A6). */
export const causeOf = ({ cause, metadata }: GrpcFailure): FailureCause | undefined => {
  if (cause !== undefined) return cause
  const pushback = single(metadata["grpc-retry-pushback-ms"])
  return pushback === undefined || /^\d+$/.test(pushback) ? undefined : "final"
}

/** The value of a header field that should be there once. */
export const single = (value: ResponseHeaders[string]): string | undefined => {
  if (typeof value === "string" || value === undefined) return value
  return typeof value === "number" ? String(value) : value[0]
}
