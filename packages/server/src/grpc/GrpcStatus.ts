/**
 * How a call ended, as gRPC says it: a code, a text and our tag of the failure, and these three as header fields. Which
 * failure has which code is in core's InferenceError.ts; the fields of a call that succeeded are in NodeCallStream.ts.
 */
import { documentHeader, documentOf, tagHeader, tagOf } from "@nereid/core/internal/wire/ErrorHeaders"
import { GrpcCode } from "@nereid/core/internal/grpc/GrpcCode"
import { statusOf } from "@nereid/core/internal/wire/ErrorStatus"
import { type InferenceError, Unavailable } from "@nereid/core/Errors"
import { retryAfter } from "@nereid/core/internal/error/InferenceError"

export interface GrpcStatus {
  readonly code: number
  readonly message: string
  readonly tag: string
  /** The fields of an error that a model declares. */
  readonly document?: string | undefined
  /** Milliseconds after which the caller may try again, where that is known. */
  readonly retryAfter?: number | undefined
}

export const fromError = (error: InferenceError): GrpcStatus => ({
  code: statusOf(error).grpc,
  message: error.message,
  tag: tagOf(error),
  document: documentOf(error),
  retryAfter: retryAfter(error),
})

/** By its name in the specification; one that is not used here by its number. */
export const name = (code: number): string =>
  Object.entries(GrpcCode).find(([, other]) => other === code)?.[0] ?? String(code)

/** A defect; what it was is in the log and not for the caller. */
export const internal: GrpcStatus = {
  code: GrpcCode.INTERNAL,
  message: "Internal error of the server; its log says why",
  tag: "ExecutionFailed",
}

/** The caller has ended in a message, of which so much has come. */
export const incomplete = (progress: string): GrpcStatus => ({
  code: GrpcCode.INVALID_ARGUMENT,
  message: `incomplete message: ${progress}`,
  tag: "InvalidRequest",
})

/** A message has not come completely within so many milliseconds. */
export const late = (milliseconds: number, progress: string): GrpcStatus => ({
  code: GrpcCode.DEADLINE_EXCEEDED,
  message: `the message did not arrive within ${milliseconds} ms: ${progress}`,
  tag: "DeadlineExceeded",
})

/** An answer of so many bytes. */
export const tooLarge = (length: number, limit: number): GrpcStatus => ({
  code: GrpcCode.RESOURCE_EXHAUSTED,
  message: `response too large: ${length} bytes, at most ${limit}`,
  tag: "ExecutionFailed",
})

/** What an inference gets whose request is not whole before a stop, in the protocol's words. */
export const shuttingDown = new Unavailable({
  message: "GRPC server is shutting down and has stopped accepting new requests.",
})

export const headers = (status: GrpcStatus) => ({
  "grpc-status": String(status.code),
  "grpc-message": encodeMessage(status.message),
  ...metadata(status),
})

/**
 * Those of the header fields that are ours, and gRPC's own word for when to try again, a trailer that its clients obey where
 * they retry (gRFC A6, "Pushback").
 */
export const metadata = ({
  tag,
  document,
  retryAfter,
}: Pick<GrpcStatus, "tag" | "document" | "retryAfter">): Record<string, string> => ({
  [tagHeader]: tag,
  ...(document === undefined ? {} : { [documentHeader]: document }),
  ...(retryAfter === undefined ? {} : { "grpc-retry-pushback-ms": String(retryAfter) }),
})

/**
 * Texts quote what came, names of any length included, but clients accept header lists of 8 or 16 KiB only; and three
 * bytes may stand for one.
 */
export const maxMessageLength = 2_000

/** Also without half a surrogate pair, which no encoding of a header takes. */
export const shorten = (message: string): string =>
  (message.length <= maxMessageLength ? message : `${message.slice(0, maxMessageLength)}…`).toWellFormed()

/** The header `grpc-message`: UTF-8, percent-encoded but for printable ASCII (gRPC over HTTP/2, "Responses"). */
export const encodeMessage = (message: string): string => {
  const text = shorten(message)
  // A space at either end is no valid header value for HTTP/2 (RFC 9113, 8.2.1).
  if (/^[!-$&-~]([ -$&-~]*[!-$&-~])?$/.test(text)) return text
  let encoded = ""
  const bytes = new TextEncoder().encode(text)
  for (const [index, byte] of bytes.entries()) {
    const atEnd = index === 0 || index === bytes.length - 1
    const plain = byte > 0x20 ? byte < 0x7f && byte !== 0x25 : byte === 0x20 && !atEnd
    encoded += plain ? String.fromCharCode(byte) : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`
  }
  return encoded
}
