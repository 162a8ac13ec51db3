/** Codes of a model's TritonError, by their numbers on the wire, and the errors of a call that they stand for. */
import {
  AlreadyExists,
  Cancelled,
  ExecutionFailed,
  type InferenceError,
  InvalidRequest,
  ModelNotFound,
  Unavailable,
  Unknown,
  Unsupported,
} from "@nereid/core/Errors"
import { GrpcCode } from "@nereid/core/internal/grpc/GrpcCode"
import { statusOf } from "@nereid/core/internal/wire/ErrorStatus"

const internal = 1

/** The error of a code; an unknown code is INTERNAL. */
export const toError = (code: number | undefined, message: string): InferenceError => {
  switch (code) {
    case 0:
      return new Unknown({ message })
    case 2:
      return new ModelNotFound({ message })
    case 3:
      return new InvalidRequest({ message })
    case 4:
      return new Unavailable({ message })
    case 5:
      return new Unsupported({ message })
    case 6:
      return new AlreadyExists({ message })
    case 7:
      return new Cancelled({ message })
    default:
      return new ExecutionFailed({ message })
  }
}

/** The code of an error, for the model that has made the call. */
export const ofError = (error: InferenceError): number => codes.get(statusOf(error).grpc) ?? internal

const codes: ReadonlyMap<number, number> = new Map([
  [GrpcCode.UNKNOWN, 0],
  [GrpcCode.INTERNAL, 1],
  [GrpcCode.NOT_FOUND, 2],
  [GrpcCode.INVALID_ARGUMENT, 3],
  [GrpcCode.UNAVAILABLE, 4],
  [GrpcCode.UNIMPLEMENTED, 5],
  [GrpcCode.ALREADY_EXISTS, 6],
  [GrpcCode.CANCELLED, 7],
])
