/** Problems of a reply by its headers and trailers, in words. */
import * as GrpcContentType from "@nereid/core/internal/grpc/GrpcContentType"
import { codeName, GrpcCode } from "@nereid/core/internal/grpc/GrpcCode"
import * as GrpcStatus from "@nereid/core/internal/grpc/GrpcStatus"
import type { Headers } from "../http2/Http2Connection.ts"
import type { Overload } from "../target/Load.ts"

/** The problem of a reply's headers; undefined if they begin a gRPC reply. */
export const ofHead = (headers: Headers): string | undefined => {
  const status = headers[":status"]
  if (status !== "200") return `HTTP status ${status}`
  const type = text(headers["content-type"]) ?? ""
  return GrpcContentType.isPlain(type) ? undefined : `content-type ${JSON.stringify(type)}, which is not gRPC`
}

/** The problem of a call with these trailers; undefined if it succeeded. */
export const ofTrailers = (trailers: Headers): string | undefined => {
  const status = text(trailers["grpc-status"])
  if (status === "0") return undefined
  if (status === undefined) return "the response has no grpc-status"
  const { code, message } = GrpcStatus.read(status, text(trailers["grpc-message"]))
  return `${codeName(code) ?? `grpc-status ${code}`}${message === "" ? "" : `: ${message}`}`
}

/** Whether these trailers report an overloaded server. */
export const overload = (trailers: Headers): Overload | undefined => {
  const status = Number(trailers["grpc-status"])
  if (status === GrpcCode.DEADLINE_EXCEEDED) return "late"
  return status === GrpcCode.UNAVAILABLE || status === GrpcCode.RESOURCE_EXHAUSTED ? "refused" : undefined
}

/** The value of a field that should be there once. */
export const text = (value: Headers[string]): string | undefined => (typeof value === "object" ? value[0] : value)

/** The problem of a message that its reader refuses. Readers of replies have no size limit, so it is compressed. */
export const compressed = "the server sent a compressed message, but the client accepts no compression"
