/**
 * Errors as header fields or trailers, beside the protocol's code and message: Nereid's clients restore the server's
 * error from them. ErrorStatus.ts has the status codes.
 */
import {
  DeclaredFailure,
  fromTag,
  type InferenceError,
  SequenceNotFound,
  sequenceLosses,
} from "../error/InferenceError.ts"
import { errorStatuses, statusTag } from "./ErrorStatus.ts"

/** The header field that carries the tag of an error. */
export const tagHeader = "nereid-error"

/** The header field that carries the fields of a declared error or a SequenceNotFound, as JSON. */
export const documentHeader = "nereid-error-detail"

/** The largest JSON of a declared error, in characters: every client accepts 8 KiB of header fields in total. */
export const maxDocumentLength = 4096

/** Whether a declared error may have this tag. */
export const isErrorKind = (tag: string): boolean => /^[!-~]{1,256}$/.test(tag)

/** The tag that remote callers receive. */
export const tagOf = (error: InferenceError): string =>
  error instanceof DeclaredFailure ? error.kind : statusTag(error)

/** The fields of an error beside its message, as a header value; undefined for an error that has none. */
export const documentOf = (error: InferenceError): string | undefined => {
  if (error instanceof DeclaredFailure) return error.document ?? "{}"
  if (!(error instanceof SequenceNotFound) || error.reason === undefined) return undefined
  return JSON.stringify({ reason: error.reason, idleMillis: error.idleMillis })
}

export const headersOf = (error: InferenceError): { readonly [name: string]: string } => {
  const document = documentOf(error)
  return { [tagHeader]: tagOf(error), ...(document !== undefined && { [documentHeader]: document }) }
}

/** The header fields, or trailers, of a failure. */
export interface FailureHeaders {
  readonly tag: string | undefined
  /** The fields of a declared error, as JSON. */
  readonly document: string | undefined
  /** In milliseconds. */
  readonly retryAfter: number | undefined
}

/** The error in these header fields; `closest`, derived from the status, if they name none. */
export const fromHeaders = (
  { tag, document, retryAfter }: FailureHeaders,
  closest: InferenceError,
  status: { readonly http: number } | { readonly grpc: number },
): InferenceError => {
  const { message } = closest
  if (tag === "SequenceNotFound") return sequenceNotFound(message, document)
  const general = fromTag(tag ?? (retryAfter === undefined ? "" : closest._tag), message, retryAfter)
  if (general !== undefined || tag === undefined || document === undefined) return general ?? closest
  // Our servers send no such fields. Passed on by a server of ours, they would not be valid header fields.
  if (!isErrorKind(tag) || document.length > maxDocumentLength || !/^[ -~]*$/.test(document)) return closest
  const implied = errorStatuses[statusTag(closest)]
  return new DeclaredFailure({ message, kind: tag, ...implied, ...status, document, error: undefined })
}

const sequenceNotFound = (message: string, document: string | undefined): SequenceNotFound => {
  const fields = document !== undefined && document.length <= maxDocumentLength ? parsed(document) : undefined
  if (typeof fields !== "object" || fields === null) return new SequenceNotFound({ message })
  const reason = sequenceLosses.find((loss) => "reason" in fields && fields.reason === loss)
  const idleMillis = "idleMillis" in fields && typeof fields.idleMillis === "number" ? fields.idleMillis : undefined
  return new SequenceNotFound({ message, reason, idleMillis })
}

const parsed = (document: string): unknown => {
  try {
    return JSON.parse(document)
  } catch {
    return undefined
  }
}
