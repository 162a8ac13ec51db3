/**
 * How a gRPC call ended, from the headers and trailers of its stream: nothing if it went well, else code and message.
 * https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md and http-grpc-status-mapping.md beside it.
 */
import { constants, type IncomingHttpHeaders } from "node:http2"
import { GrpcCode } from "@nereid/core/internal/grpc/GrpcCode"

export interface GrpcFailure {
  readonly code: number
  readonly message: string
  /** The headers that carried the status; empty where the failure is not the server's. */
  readonly metadata: IncomingHttpHeaders
}

/** For a failure that no server reported. */
export const failure = (code: number, message: string): GrpcFailure => ({ code, message, metadata: {} })

/** The status of trailers, or of headers that are trailers as well; undefined where they carry none. */
export const fromTrailers = (headers: IncomingHttpHeaders): GrpcFailure | "ok" | undefined => {
  const status = single(headers["grpc-status"])
  if (status === undefined) return undefined
  if (status === "0") return "ok"
  const text = single(headers["grpc-message"])
  const message = text === undefined ? "" : percentDecode(text)
  const code = /^\d{1,9}$/.test(status) ? Number(status) : undefined
  if (code !== undefined && code > 0) return { code, message, metadata: headers }
  return failure(GrpcCode.UNKNOWN, `the server sent the grpc-status ${JSON.stringify(status)}: ${message}`)
}

/** What is wrong with the headers of a response that carry no gRPC status. */
export const fromHeaders = (headers: IncomingHttpHeaders): GrpcFailure | undefined => {
  // A number at run time, which the index signature of the type does not know.
  const status = Number(headers[":status"])
  if (status !== 200) return failure(codeOfStatus(status), `the server answered with HTTP status ${status}`)
  const type = headers["content-type"] ?? ""
  if (type !== "application/grpc" && !/^application\/grpc(?:\+proto)?(?:$|;)/.test(type)) {
    return failure(
      GrpcCode.UNKNOWN,
      `the server answered with content-type ${JSON.stringify(type)}, not application/grpc`,
    )
  }
  return undefined
}

const codeOfStatus = (status: number): number => {
  switch (status) {
    case 400:
      return GrpcCode.INTERNAL
    case 401:
      return GrpcCode.UNAUTHENTICATED
    case 403:
      return GrpcCode.PERMISSION_DENIED
    case 404:
      return GrpcCode.UNIMPLEMENTED
    case 429:
    case 502:
    case 503:
    case 504:
      return GrpcCode.UNAVAILABLE
    default:
      return GrpcCode.UNKNOWN
  }
}

/** The code for a stream that the server has reset. */
export const codeOfReset = (code: number): number => {
  switch (code) {
    case constants.NGHTTP2_REFUSED_STREAM:
      return GrpcCode.UNAVAILABLE
    case constants.NGHTTP2_CANCEL:
      return GrpcCode.CANCELLED
    case constants.NGHTTP2_ENHANCE_YOUR_CALM:
      return GrpcCode.RESOURCE_EXHAUSTED
    default:
      return GrpcCode.INTERNAL
  }
}

/** The header of a deadline: at most eight digits and a unit, rounded up. */
export const timeoutHeader = (milliseconds: number): string => {
  const millis = Math.max(1, Math.ceil(milliseconds))
  return millis < 1e8 ? `${millis}m` : `${Math.min(99_999_999, Math.ceil(millis / 1000))}S`
}

/** Text of `grpc-message`. What is not properly encoded is shown as it came: it is an error text, and all there is. */
export const percentDecode = (text: string): string => {
  if (!text.includes("%")) return text
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** The value of a header field that should be there once. */
export const single = (value: string | ReadonlyArray<string> | undefined): string | undefined =>
  typeof value === "object" ? value[0] : value
