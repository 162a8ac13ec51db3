/**
 * Errors as the trailers of a gRPC call: the fields of ErrorHeaders.ts, and gRPC's trailer for the retry delay.
 * grpc/GrpcStatus.ts has the status.
 */
import type { InferenceError } from "../error/InferenceError.ts"
import { documentHeader, type FailureHeaders, fromHeaders, tagHeader } from "./ErrorHeaders.ts"
import { fromGrpc } from "./ErrorStatus.ts"

/** In milliseconds; negative for never (gRFC A6, "Pushback"). gRPC clients that retry obey it. */
const pushbackTrailer = "grpc-retry-pushback-ms"

export const trailersOf = ({ tag, document, retryAfter }: Partial<FailureHeaders>): Record<string, string> => ({
  ...(tag === undefined ? {} : { [tagHeader]: tag }),
  ...(document === undefined ? {} : { [documentHeader]: document }),
  ...(retryAfter === undefined ? {} : { [pushbackTrailer]: String(retryAfter) }),
})

/** The error of a call that ended with this status. `field` reads a trailer by its name in lower case. */
export const fromTrailers = (
  code: number,
  message: string,
  field: (name: string) => string | undefined,
): InferenceError => {
  const pushback = field(pushbackTrailer)
  const failure = {
    tag: field(tagHeader),
    document: field(documentHeader),
    retryAfter: pushback !== undefined && /^\d{1,9}$/.test(pushback) ? Number(pushback) : undefined,
  }
  return fromHeaders(failure, fromGrpc(code, message), { grpc: code })
}
