/**
 * How a gRPC call ended, from the headers and trailers of its stream, in words.
 * https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md
 */
import type { Headers } from "../http2/HeaderReader.ts"

const names: ReadonlyArray<string> = [
  "OK",
  "CANCELLED",
  "UNKNOWN",
  "INVALID_ARGUMENT",
  "DEADLINE_EXCEEDED",
  "NOT_FOUND",
  "ALREADY_EXISTS",
  "PERMISSION_DENIED",
  "RESOURCE_EXHAUSTED",
  "FAILED_PRECONDITION",
  "ABORTED",
  "OUT_OF_RANGE",
  "UNIMPLEMENTED",
  "INTERNAL",
  "UNAVAILABLE",
  "DATA_LOSS",
  "UNAUTHENTICATED",
]

/** What is wrong with the head of a reply; undefined where nothing is. */
export const headProblem = (headers: Headers): string | undefined => {
  const status = headers.get(":status")
  if (status !== "200") return `HTTP status ${status}`
  const type = headers.get("content-type") ?? ""
  return /^application\/grpc(?:\+proto)?(?:$|;)/.test(type)
    ? undefined
    : `content-type ${JSON.stringify(type)}, which is not gRPC`
}

/** What is wrong with a call that has these trailers; undefined where it went well. */
export const problem = (trailers: Headers): string | undefined => {
  const status = trailers.get("grpc-status")
  if (status === "0") return undefined
  if (status === undefined) return "a reply without grpc-status"
  const message = percentDecode(trailers.get("grpc-message") ?? "")
  return `${names[Number(status)] ?? `grpc-status ${status}`}${message === "" ? "" : `: ${message}`}`
}

/** What is not properly encoded is shown as it came. */
const percentDecode = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
