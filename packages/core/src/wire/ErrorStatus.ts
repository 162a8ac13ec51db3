/**
 * Errors as status codes: a table of the gRPC code and HTTP status of each error, and the closest error for a status of
 * another server. ErrorHeaders.ts has the header fields.
 */
import {
  Cancelled,
  AlreadyExists,
  DeadlineExceeded,
  DeclaredFailure,
  ExecutionFailed,
  type InferenceError,
  InvalidRequest,
  ModelNotFound,
  QueueFull,
  QueueTimeout,
  type Tag,
  Unavailable,
  Unsupported,
} from "../error/InferenceError.ts"
import { GrpcCode } from "../grpc/GrpcCode.ts"

export interface ErrorStatus {
  readonly grpc: number
  readonly http: number
}

/** Statuses are those of Triton, except that mistakes of callers are 4xx over HTTP. */
export const errorStatuses: { readonly [T in Tag]: ErrorStatus } = {
  InvalidRequest: { grpc: GrpcCode.INVALID_ARGUMENT, http: 400 },
  MalformedRequest: { grpc: GrpcCode.INTERNAL, http: 400 },
  ModelNotFound: { grpc: GrpcCode.NOT_FOUND, http: 404 },
  ModelNotReady: { grpc: GrpcCode.UNAVAILABLE, http: 503 },
  QueueFull: { grpc: GrpcCode.UNAVAILABLE, http: 503 },
  QueueTimeout: { grpc: GrpcCode.UNAVAILABLE, http: 503 },
  Unavailable: { grpc: GrpcCode.UNAVAILABLE, http: 503 },
  DeadlineExceeded: { grpc: GrpcCode.DEADLINE_EXCEEDED, http: 503 },
  Cancelled: { grpc: GrpcCode.CANCELLED, http: 400 },
  Unsupported: { grpc: GrpcCode.UNIMPLEMENTED, http: 501 },
  AlreadyExists: { grpc: GrpcCode.ALREADY_EXISTS, http: 400 },
  Unknown: { grpc: GrpcCode.UNKNOWN, http: 400 },
  ExecutionFailed: { grpc: GrpcCode.INTERNAL, http: 500 },
  RegionNotFound: { grpc: GrpcCode.NOT_FOUND, http: 404 },
  RegionExists: { grpc: GrpcCode.ALREADY_EXISTS, http: 400 },
  RegionFailed: { grpc: GrpcCode.INTERNAL, http: 400 },
  SequenceNotFound: { grpc: GrpcCode.INVALID_ARGUMENT, http: 400 },
}

/**
 * Start of the message about an extent that is not an unsigned integer. Triton's tests assert its status:
 * test_negative_dimensions of qa/L0_http/http_test.py.
 */
const wrongExtent = "Unable to parse 'shape': attempt to access JSON non-unsigned-integer as unsigned-integer"

const wrongExtentStatus: ErrorStatus = { grpc: GrpcCode.INTERNAL, http: 500 }

/** The tag whose row in the table has the status; errors without a separate row share that of ExecutionFailed. */
export const statusTag = ({ _tag }: InferenceError): Tag =>
  _tag === "Unrecoverable" || _tag === "DeclaredFailure" ? "ExecutionFailed" : _tag

export const statusOf = (error: InferenceError): ErrorStatus => {
  if (error instanceof DeclaredFailure) return error
  if (error._tag === "MalformedRequest" && error.message.startsWith(wrongExtent)) return wrongExtentStatus
  return errorStatuses[statusTag(error)]
}

/** The error that comes closest to a gRPC status of a server that sends no tag. */
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
      // gRPC has one code for a full queue and for a message that is too large.
      return /larg|max/i.test(message) ? new InvalidRequest({ message }) : new QueueFull({ message })
    default:
      return new ExecutionFailed({ message })
  }
}

/** The error that comes closest to an HTTP status of a server that sends no tag. */
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
