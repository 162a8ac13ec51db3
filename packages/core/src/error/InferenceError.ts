/**
 * Every expected failure of a call, as a tagged error. Messages name the field, the received value and the allowed
 * values, in the protocol's terms. Status codes and headers are in wire/. Defects are not part of this module: they
 * interrupt the call and are logged.
 */
import { Data } from "effect"

interface Message {
  readonly message: string
}

interface RetryableMessage extends Message {
  /** Milliseconds after which a retry is worthwhile, if known. Callers receive it as a header or trailer. */
  readonly retryAfter?: number | undefined
}

/** The request does not fit the model or the protocol. */
export class InvalidRequest extends Data.TaggedError("InvalidRequest")<Message> {}
/** The body cannot be parsed. */
export class MalformedRequest extends Data.TaggedError("MalformedRequest")<Message> {}
/** No model has this name and version. */
export class ModelNotFound extends Data.TaggedError("ModelNotFound")<Message> {}
/** The model is known and takes no requests now. */
export class ModelNotReady extends Data.TaggedError("ModelNotReady")<Message> {}
/**
 * The queue of the model, or the memory for requests in flight, is full, or the queue is too long to answer before the
 * deadline. A retry may succeed.
 */
export class QueueFull extends Data.TaggedError("QueueFull")<RetryableMessage> {}
/** The request has waited for as long as the model lets a request wait in its queue. */
export class QueueTimeout extends Data.TaggedError("QueueTimeout")<RetryableMessage> {}
/** The server, or the model, is stopping or cannot be reached. */
export class Unavailable extends Data.TaggedError("Unavailable")<RetryableMessage> {}
/** The caller's deadline passed before there was a response. */
export class DeadlineExceeded extends Data.TaggedError("DeadlineExceeded")<Message> {}
/** The caller cancelled the request. */
export class Cancelled extends Data.TaggedError("Cancelled")<Message> {}
/** The request uses a part of the protocol that the model or the server does not support. */
export class Unsupported extends Data.TaggedError("Unsupported")<Message> {}
/** The request would create something that already exists. */
export class AlreadyExists extends Data.TaggedError("AlreadyExists")<Message> {}
/** A handler's failure of unknown cause. Other failures of handlers are ExecutionFailed. */
export class Unknown extends Data.TaggedError("Unknown")<Message> {}
/** The handler or the runtime failed while it executed the request. */
export class ExecutionFailed extends Data.TaggedError("ExecutionFailed")<Message> {}
/** No shared memory region has this name. */
export class RegionNotFound extends Data.TaggedError("RegionNotFound")<Message> {}
/** Another shared memory region has this name. */
export class RegionExists extends Data.TaggedError("RegionExists")<Message> {}
/** A shared memory region cannot be opened, read or written. */
export class RegionFailed extends Data.TaggedError("RegionFailed")<Message> {}

/**
 * Why a request reaches no sequence. `neverStarted`: no sequence with its id is remembered. `failed`: its instance
 * is gone. `tooLarge`: its state exceeded a limit. `reloaded`: its model was loaded again. `restarted`: its session had
 * started it, and the server does not know it. `moved`: it has been exported, and may go on on another server.
 */
export type SequenceLoss = (typeof sequenceLosses)[number]

export const sequenceLosses = [
  "neverStarted",
  "ended",
  "expired",
  "cancelled",
  "failed",
  "tooLarge",
  "reloaded",
  "restarted",
  "moved",
] as const

interface SequenceMessage extends Message {
  /** Undefined if the server does not say. */
  readonly reason?: SequenceLoss | undefined
  /** Milliseconds that an expired sequence was idle. */
  readonly idleMillis?: number | undefined
}

/** The request continues a sequence that does not exist, or exists no more. */
export class SequenceNotFound extends Data.TaggedError("SequenceNotFound")<SequenceMessage> {}

/**
 * A failure of a handler that only a new process can repair, such as a lost device. A handler fails with it, throws it
 * or dies of it. The model rejects further requests, readiness turns false, and the server drains and stops. Its
 * process exits with a nonzero code, so that an orchestrator restarts it (`ServerOptions.onUnrecoverable`). Remote
 * callers receive an ExecutionFailed.
 *
 * ```ts
 * Model.batch(M, (batch) => {
 *   if (device.isLost) throw new Errors.Unrecoverable({ message: "the device is lost" })
 * ```
 */
export class Unrecoverable extends Data.TaggedError("Unrecoverable")<Message> {}

interface DeclaredFields extends Message {
  /** The tag of the declared error class. */
  readonly kind: string
  readonly http: number
  readonly grpc: number
  /** The error's fields as JSON in ASCII; undefined if they cannot be encoded. */
  readonly document: string | undefined
  /** The error that the handler failed with; undefined for a failure of another process. */
  readonly error: Error | undefined
}

/**
 * A failure of a class that a model declares (`Model.Service`'s `errors`), as code that does not know the class
 * receives it: a front end, or a caller by name. Models that call other models pass it on unchanged. Callers of the
 * declaring model receive the class itself.
 */
export class DeclaredFailure extends Data.TaggedError("DeclaredFailure")<DeclaredFields> {}

/** The errors that travel under their own tag. */
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
  SequenceNotFound,
}

/** The tag of an error that travels under its own tag. */
export type Tag = keyof typeof constructors

/** Any failure of a call, except for the errors that its model declares. */
export type InferenceError = InstanceType<(typeof constructors)[Tag]> | Unrecoverable | DeclaredFailure

export const isTag = (tag: string): tag is Tag => Object.hasOwn(constructors, tag)

/** Whether an error of this module has the tag, so that a declared error cannot have it. */
export const isReservedTag = (tag: string): boolean =>
  isTag(tag) || tag === "Unrecoverable" || tag === "DeclaredFailure"

/** Whether a value is an error of a call, including errors that a model declares. */
export const isInferenceError = (error: unknown): error is InferenceError => {
  if (error instanceof Unrecoverable || error instanceof DeclaredFailure) return true
  return error instanceof Error && "_tag" in error && typeof error._tag === "string" && isTag(error._tag)
}

/**
 * The error that a tag names, so that a remote error is the same value as a local one. Undefined for an unknown tag.
 */
export const fromTag = (tag: string, message: string, retryAfter?: number): InferenceError | undefined =>
  isTag(tag) ? new constructors[tag](retryAfter === undefined ? { message } : { message, retryAfter }) : undefined

/** The same failure with another message. One that is not among the protocol's own tags becomes an ExecutionFailed. */
export const withMessage = (error: InferenceError, message: string): InferenceError =>
  fromTag(error._tag, message, retryAfter(error)) ?? new ExecutionFailed({ message })

/** Milliseconds after which the caller may retry; undefined if unknown. */
export const retryAfter = (error: object): number | undefined => {
  const millis = "retryAfter" in error ? error.retryAfter : undefined
  return typeof millis === "number" && millis >= 0 && millis <= maxRetryAfter ? Math.ceil(millis) : undefined
}

/** A day, in milliseconds: headers and timers cannot carry every number. */
const maxRetryAfter = 86_400_000
