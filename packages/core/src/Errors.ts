/**
 * Every expected failure, in one table: tag, gRPC code and HTTP status. A message says what came, what was allowed and
 * which field, in the words that the protocol's clients know. Defects are not here: they die, and are logged.
 */
import { Data } from "effect"

/** The gRPC codes of failures, by name. */
export const GrpcCode = {
  CANCELLED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  ABORTED: 10,
  OUT_OF_RANGE: 11,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  DATA_LOSS: 15,
  UNAUTHENTICATED: 16,
} as const

/** What each failure is on the wire. */
export const table = {
  InvalidRequest: { grpc: GrpcCode.INVALID_ARGUMENT, http: 400 },
  /** The body cannot be parsed. HTTP status as the protocol's clients know it: 500. */
  MalformedRequest: { grpc: GrpcCode.INTERNAL, http: 500 },
  ModelNotFound: { grpc: GrpcCode.NOT_FOUND, http: 404 },
  ModelNotReady: { grpc: GrpcCode.UNAVAILABLE, http: 503 },
  QueueFull: { grpc: GrpcCode.UNAVAILABLE, http: 503 },
  /** The request has waited for as long as the model lets one wait in its queue. */
  QueueTimeout: { grpc: GrpcCode.UNAVAILABLE, http: 503 },
  /** The server, or the model, is stopping or cannot be reached. */
  Unavailable: { grpc: GrpcCode.UNAVAILABLE, http: 503 },
  /** The caller's deadline passed before there was an answer. */
  DeadlineExceeded: { grpc: GrpcCode.DEADLINE_EXCEEDED, http: 503 },
  Cancelled: { grpc: GrpcCode.CANCELLED, http: 400 },
  Unsupported: { grpc: GrpcCode.UNIMPLEMENTED, http: 501 },
  /** What the request would make is there already: an answer of handlers. */
  AlreadyExists: { grpc: GrpcCode.ALREADY_EXISTS, http: 400 },
  /** A handler's answer that says nothing of whose fault it is; other failures are ExecutionFailed. HTTP status as clients know it. */
  Unknown: { grpc: GrpcCode.UNKNOWN, http: 400 },
  /** The handler or the runtime failed while it executed the request. */
  ExecutionFailed: { grpc: GrpcCode.INTERNAL, http: 500 },
  /** No shared memory region has this name. */
  RegionNotFound: { grpc: GrpcCode.NOT_FOUND, http: 404 },
  /** Another shared memory region has this name. */
  RegionExists: { grpc: GrpcCode.ALREADY_EXISTS, http: 400 },
  /** A shared memory region cannot be opened, read or written. */
  RegionFailed: { grpc: GrpcCode.INTERNAL, http: 500 },
} as const

export type Tag = keyof typeof table

interface Message {
  readonly message: string
}

interface Refusal extends Message {
  /** Milliseconds after which it is worth another try, where that is known: a header or trailer for the caller. */
  readonly retryAfter?: number | undefined
}

export class InvalidRequest extends Data.TaggedError("InvalidRequest")<Message> {}
export class MalformedRequest extends Data.TaggedError("MalformedRequest")<Message> {}
export class ModelNotFound extends Data.TaggedError("ModelNotFound")<Message> {}
export class ModelNotReady extends Data.TaggedError("ModelNotReady")<Message> {}
export class QueueFull extends Data.TaggedError("QueueFull")<Refusal> {}
export class QueueTimeout extends Data.TaggedError("QueueTimeout")<Refusal> {}
export class Unavailable extends Data.TaggedError("Unavailable")<Refusal> {}
export class DeadlineExceeded extends Data.TaggedError("DeadlineExceeded")<Message> {}
export class Cancelled extends Data.TaggedError("Cancelled")<Message> {}
export class Unsupported extends Data.TaggedError("Unsupported")<Message> {}
export class AlreadyExists extends Data.TaggedError("AlreadyExists")<Message> {}
export class Unknown extends Data.TaggedError("Unknown")<Message> {}
export class ExecutionFailed extends Data.TaggedError("ExecutionFailed")<Message> {}
export class RegionNotFound extends Data.TaggedError("RegionNotFound")<Message> {}
export class RegionExists extends Data.TaggedError("RegionExists")<Message> {}
export class RegionFailed extends Data.TaggedError("RegionFailed")<Message> {}

/**
 * What a handler fails with, throws or dies of where nothing but a new process helps, such as a device that is lost. Its caller
 * has it as any ExecutionFailed. The model takes no more requests, readiness turns false, and the server drains and stops; its
 * process ends with an exit code that is not 0, for an orchestrator to start it again (`ServerOptions.onUnrecoverable`).
 *
 * ```ts
 * Model.batch(M, (batch) => {
 *   if (device.isLost) throw new Errors.Unrecoverable({ message: "the device is lost" })
 * ```
 */
export class Unrecoverable extends ExecutionFailed {}

interface DeclaredFields extends Message {
  /** Its tag. */
  readonly kind: string
  readonly http: number
  readonly grpc: number
  /** Its fields as JSON in ASCII; undefined where they cannot travel. */
  readonly document: string | undefined
  /** What the handler has failed with; undefined where that was in another process. */
  readonly error: Error | undefined
}

/**
 * A failure of a class that a model declares (`Model.Service`'s `errors`), for whoever does not know the class: an ExecutionFailed
 * with a tag of its own, which models that ask models pass on as it is. Callers of the model itself have the class.
 */
export class DeclaredFailure extends ExecutionFailed {
  readonly kind: string
  readonly http: number
  readonly grpc: number
  readonly document: string | undefined
  readonly error: Error | undefined

  constructor({ message, kind, http, grpc, document, error }: DeclaredFields) {
    super({ message })
    this.kind = kind
    this.http = http
    this.grpc = grpc
    this.document = document
    this.error = error
  }
}

const constructors = {
  InvalidRequest,
  MalformedRequest,
  ModelNotFound,
  ModelNotReady,
  QueueFull,
  QueueTimeout,
  Unavailable,
  DeadlineExceeded,
  Cancelled,
  Unsupported,
  AlreadyExists,
  Unknown,
  ExecutionFailed,
  RegionNotFound,
  RegionExists,
  RegionFailed,
} satisfies { readonly [T in Tag]: new (fields: Message) => { readonly _tag: T } }

/** Whatever `infer` can fail with. */
export type InferenceError = InstanceType<(typeof constructors)[Tag]>

export const isInferenceError = (error: unknown): error is InferenceError =>
  error instanceof Error && "_tag" in error && typeof error._tag === "string" && Object.hasOwn(table, error._tag)

export const grpcCode = (error: InferenceError): number =>
  error instanceof DeclaredFailure ? error.grpc : table[error._tag].grpc

export const httpStatus = (error: InferenceError): number =>
  error instanceof DeclaredFailure ? error.http : table[error._tag].http

/** The tag that callers know it by. */
export const tagOf = (error: InferenceError): string => (error instanceof DeclaredFailure ? error.kind : error._tag)

/** The fields of a declared one, as a header field; undefined for any other. */
export const documentOf = (error: InferenceError): string | undefined =>
  error instanceof DeclaredFailure ? (error.document ?? "{}") : undefined

/** The header fields of a failure, beside the protocol's own code and text. */
export const headersOf = (error: InferenceError): { readonly [name: string]: string } => {
  const document = documentOf(error)
  return { [tagHeader]: tagOf(error), ...(document !== undefined && { [documentHeader]: document }) }
}

/** Characters of the fields of a declared failure; header fields of 8 KiB together are what every client takes. */
export const maxDocumentLength = 4096

/** Whether a declared failure may have this tag. */
export const isKind = (tag: string): boolean => /^[!-~]{1,256}$/.test(tag)

/** The header fields, or trailers, of a failure. */
export interface FailureHeaders {
  readonly tag: string | undefined
  /** Of a failure that a model declares. */
  readonly document: string | undefined
  /** Milliseconds. */
  readonly retryAfter: number | undefined
}

/** What the header fields of a failure say, beside what comes closest to the rest of its answer. */
export const fromHeaders = (
  { tag, document, retryAfter: millis }: FailureHeaders,
  closest: InferenceError,
  status: { readonly http: number } | { readonly grpc: number },
): InferenceError => {
  const { message } = closest
  const general = fromTag(tag ?? (millis === undefined ? "" : closest._tag), message, millis)
  if (general !== undefined || tag === undefined || document === undefined) return general ?? closest
  // What no server of ours sends is not passed on by one: it would be no header field.
  if (!isKind(tag) || document.length > maxDocumentLength || !/^[ -~]*$/.test(document)) return closest
  return new DeclaredFailure({ message, kind: tag, ...table[closest._tag], ...status, document, error: undefined })
}

/** Milliseconds after which the caller may try again; undefined where nobody knows. */
export const retryAfter = (error: object): number | undefined => {
  const millis = "retryAfter" in error ? error.retryAfter : undefined
  return typeof millis === "number" && millis >= 0 && millis <= mostMillis ? Math.ceil(millis) : undefined
}

/** A day: headers and timers have no room for any number. */
const mostMillis = 86_400_000

/** The failure that a tag from the wire names, so that a remote error is the same value as a local one. */
export const fromTag = (tag: string, message: string, retryAfter?: number): InferenceError | undefined =>
  isTag(tag) ? new constructors[tag](retryAfter === undefined ? { message } : { message, retryAfter }) : undefined

/** The failure that comes closest to a gRPC status of a server that sends no tag. */
export const fromGrpc = (code: number, message: string): InferenceError => {
  if (message.includes("Exceeds maximum queue size")) return new QueueFull({ message })
  if (message.includes("Request timeout expired")) return new QueueTimeout({ message })
  switch (code) {
    case GrpcCode.CANCELLED:
      return new Cancelled({ message })
    case GrpcCode.INVALID_ARGUMENT:
      return new InvalidRequest({ message })
    case GrpcCode.DEADLINE_EXCEEDED:
      return new DeadlineExceeded({ message })
    case GrpcCode.NOT_FOUND:
      return new ModelNotFound({ message })
    case GrpcCode.ALREADY_EXISTS:
      return new AlreadyExists({ message })
    case GrpcCode.UNIMPLEMENTED:
      return new Unsupported({ message })
    case GrpcCode.UNAVAILABLE:
      return new Unavailable({ message })
    case GrpcCode.RESOURCE_EXHAUSTED:
      // gRPC has one code for a queue that is full and for a message that is too large.
      return /larg|max/i.test(message) ? new InvalidRequest({ message }) : new QueueFull({ message })
    default:
      return new ExecutionFailed({ message })
  }
}

/** The failure that comes closest to an HTTP status of a server that sends no tag. */
export const fromHttp = (status: number, message: string): InferenceError => {
  if (message.includes("Exceeds maximum queue size")) return new QueueFull({ message })
  if (message.includes("Request timeout expired")) return new QueueTimeout({ message })
  if (status === 404) return new ModelNotFound({ message })
  if (status === 501) return new Unsupported({ message })
  if (status === 503 || status === 502) return new Unavailable({ message })
  if (status === 504) return new DeadlineExceeded({ message })
  if (status === 429) return new QueueFull({ message })
  return status >= 400 && status < 500 ? new InvalidRequest({ message }) : new ExecutionFailed({ message })
}

/** The header and trailer that carry the tag of a failure beside the protocol's own code and text. */
export const tagHeader = "nereid-error"

/** The one that carries the fields of a declared failure, as JSON. */
export const documentHeader = "nereid-error-detail"

const isTag = (tag: string): tag is Tag => Object.hasOwn(table, tag)
