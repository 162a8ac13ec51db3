/** Problems of a reply by its headers and trailers, in words. */
import * as GrpcContentType from "@nereid/core/internal/grpc/GrpcContentType"
import { codeName, GrpcCode } from "@nereid/core/internal/grpc/GrpcCode"
import * as GrpcStatus from "@nereid/core/internal/grpc/GrpcStatus"
import type { Headers } from "../http2/HeaderReader.ts"
import type { Overload } from "../target/Load.ts"

/** The problem of a reply's headers; undefined if they begin a gRPC reply. */
export const ofHead = (headers: Headers): string | undefined => {
  const status = headers.get(":status")
  if (status !== "200") return `HTTP status ${status}`
  const type = headers.get("content-type") ?? ""
  return GrpcContentType.isPlain(type) ? undefined : `content-type ${JSON.stringify(type)}, which is not gRPC`
}

/** The problem of a call with these trailers; undefined if it succeeded. */
export const ofTrailers = (trailers: Headers): string | undefined => {
  const status = trailers.get("grpc-status")
  if (status === "0") return undefined
  if (status === undefined) return "the response has no grpc-status"
  const { code, message } = GrpcStatus.read(status, trailers.get("grpc-message"))
  return `${codeName(code) ?? `grpc-status ${code}`}${message === "" ? "" : `: ${message}`}`
}

/** Whether these trailers report an overloaded server. */
export const overload = (trailers: Headers): Overload | undefined => {
  const status = Number(trailers.get("grpc-status"))
  if (status === GrpcCode.DEADLINE_EXCEEDED) return "late"
  return status === GrpcCode.UNAVAILABLE || status === GrpcCode.RESOURCE_EXHAUSTED ? "refused" : undefined
}

/** The problem of a message that its reader refuses. Readers of replies have no size limit, so it is compressed. */
export const compressed = "the server sent a compressed message, but the client accepts no compression"
