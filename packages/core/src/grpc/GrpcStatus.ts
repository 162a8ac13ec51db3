/**
 * The end of a gRPC call: the trailers `grpc-status` and `grpc-message`, and the status codes for HTTP errors and
 * stream resets (PROTOCOL-HTTP2.md and http-grpc-status-mapping.md at https://github.com/grpc/grpc/tree/master/doc).
 * wire/ErrorStatus.ts maps errors to codes.
 */
import { GrpcCode } from "./GrpcCode.ts"

/** The status of a call that failed. */
export interface GrpcStatus {
  readonly code: number
  readonly message: string
}

/** The trailers of a call that succeeded. */
export const ok = { "grpc-status": "0" }

/** The trailers of a call that failed. The message is shortened. */
export const trailers = (code: number, message: string) => ({
  "grpc-status": String(code),
  "grpc-message": encodeMessage(message),
})

/**
 * Reads the trailers of a call that failed. A `grpc-status` that is not a code becomes UNKNOWN, named in the message.
 */
export const read = (status: string, message: string | undefined): GrpcStatus => {
  const text = message === undefined ? "" : decodeMessage(message)
  const code = /^\d{1,9}$/.test(status) ? Number(status) : 0
  if (code > 0) return { code, message: text }
  return { code: GrpcCode.UNKNOWN, message: `the server sent the grpc-status ${JSON.stringify(status)}: ${text}` }
}

/** Longest message in characters. Clients accept header lists of 8 or 16 KiB, and three bytes may stand for one. */
export const maxMessageLength = 2_000

/** Cuts a message to the longest length, and replaces unpaired surrogates, which UTF-8 cannot express. */
export const shorten = (message: string): string =>
  (message.length <= maxMessageLength ? message : `${message.slice(0, maxMessageLength)}…`).toWellFormed()

/** The value of `grpc-message`: shortened, as UTF-8, percent-encoded except for printable ASCII. */
export const encodeMessage = (message: string): string => {
  const text = shorten(message)
  // A space at either end is not valid in a header value of HTTP/2 (RFC 9113, 8.2.1).
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

/** Decodes the value of `grpc-message`. Returns text that is not properly encoded as it is. */
export const decodeMessage = (text: string): string => {
  if (!text.includes("%")) return text
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** The code for a response with an HTTP status other than 200 and without a gRPC status. */
export const codeOfHttpStatus = (status: number): number => {
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

/** HTTP/2 error codes (RFC 9113, 7) that map to specific gRPC codes. */
const refusedStream = 7
const cancel = 8
const enhanceYourCalm = 11

/** The code for a stream that was reset with this HTTP/2 error code. */
export const codeOfReset = (error: number): number => {
  switch (error) {
    case refusedStream:
      return GrpcCode.UNAVAILABLE
    case cancel:
      return GrpcCode.CANCELLED
    case enhanceYourCalm:
      return GrpcCode.RESOURCE_EXHAUSTED
    default:
      return GrpcCode.INTERNAL
  }
}
