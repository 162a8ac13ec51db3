/**
 * The failed end of a call, as a gRPC code, a message and the fields of the error behind it. Made from the errors of
 * the protocol, so that code and tag agree. GrpcStatus.ts and ErrorTrailers.ts of core write the status.
 */
import { documentOf, tagOf } from "@nereid/core/internal/wire/ErrorHeaders"
import { trailersOf } from "@nereid/core/internal/wire/ErrorTrailers"
import { codeName, GrpcCode } from "@nereid/core/internal/grpc/GrpcCode"
import * as GrpcStatus from "@nereid/core/internal/grpc/GrpcStatus"
import { statusOf } from "@nereid/core/internal/wire/ErrorStatus"
import {
  DeadlineExceeded,
  ExecutionFailed,
  type InferenceError,
  InvalidRequest,
  Unavailable,
} from "@nereid/core/Errors"
import { retryAfter } from "@nereid/core/internal/error/InferenceError"
import { isShared } from "@nereid/core/internal/error/Refusal"
import { minRate } from "../limit/ReceiveRate.ts"

export interface CallStatus {
  readonly code: number
  readonly message: string
  readonly tag: string
  /** The fields of an error that a model declares, as JSON. */
  readonly document: string | undefined
  /** Milliseconds after which the client may retry; undefined if unknown. */
  readonly retryAfter: number | undefined
  /** Whether many calls end with this object, so that its bytes are worth keeping. Default false. */
  readonly isShared?: boolean
}

/** The status of an error; of a shared one (Refusal.ts of core) always the same object. */
export const fromError = (error: InferenceError): CallStatus => (isShared(error) ? fromShared(error) : make(error))

const make = (error: InferenceError): CallStatus => ({
  code: statusOf(error).grpc,
  message: error.message,
  tag: tagOf(error),
  document: documentOf(error),
  retryAfter: retryAfter(error),
})

const shared = new WeakMap<InferenceError, CallStatus>()

const fromShared = (error: InferenceError): CallStatus => {
  const known = shared.get(error)
  if (known !== undefined) return known
  const status = { ...make(error), isShared: true }
  shared.set(error, status)
  return status
}

/** Status of an exceeded byte limit, for which gRPC has a separate code. */
export const exhausted = (error: InferenceError): CallStatus => ({
  ...make(error),
  code: GrpcCode.RESOURCE_EXHAUSTED,
})

/** The name of a code, for logs; its number if it has none. */
export const name = (code: number): string => codeName(code) ?? String(code)

/** A defect. Its cause is in the log and not for the caller. */
export const internal = fromError(new ExecutionFailed({ message: "Internal server error; see the server log" }))

/** The client ended its stream within a message. `progress` describes the received part. */
export const incomplete = (progress: string): CallStatus =>
  fromError(new InvalidRequest({ message: `incomplete message: ${progress}` }))

/** A message did not arrive completely in time. */
export const late = (milliseconds: number, progress: string): CallStatus =>
  fromError(new DeadlineExceeded({ message: `the message did not arrive within ${milliseconds} ms: ${progress}` }))

/** A message arrived more slowly than the minimum rate. */
export const slow = (progress: string): CallStatus =>
  fromError(
    new DeadlineExceeded({ message: `the message arrives at less than ${minRate} bytes per second: ${progress}` }),
  )

/** A response of `length` bytes. */
export const tooLarge = (length: number, limit: number): CallStatus =>
  exhausted(new ExecutionFailed({ message: `response too large: ${length} bytes, at most ${limit}` }))

/**
 * Error of streams that a stop ends, and of inferences that arrive completely only at its end, in the protocol's words.
 * They have not been executed, so clients may send them elsewhere at once.
 */
export const shuttingDown = new Unavailable({
  message: "GRPC server is shutting down and has stopped accepting new requests.",
  retryAfter: 0,
})

/** The trailers of the call. */
export const trailers = (status: CallStatus) => ({
  ...GrpcStatus.trailers(status.code, status.message),
  ...trailersOf(status),
})
