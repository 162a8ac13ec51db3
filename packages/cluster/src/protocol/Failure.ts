/** Errors of calls between runners: as the header fields of HTTP and the trailers of gRPC, but as data. */
import { Schema } from "effect"
import { ExecutionFailed, type InferenceError } from "@nereid/core/Errors"
import { retryAfter } from "@nereid/core/internal/error/InferenceError"
import { documentOf, fromHeaders, tagOf } from "@nereid/core/internal/wire/ErrorHeaders"
import { statusOf } from "@nereid/core/internal/wire/ErrorStatus"

export const Failure = Schema.Struct({
  tag: Schema.String,
  message: Schema.String,
  /** Fields of the error beside its message, as JSON. */
  document: Schema.optionalKey(Schema.String),
  retryAfter: Schema.optionalKey(Schema.Number),
  /** The gRPC status of a declared error. */
  grpc: Schema.Number,
})

export type Failure = typeof Failure.Type

export const fromError = (error: InferenceError): Failure => {
  const document = documentOf(error)
  const delay = retryAfter(error)
  return {
    tag: tagOf(error),
    message: error.message,
    ...(document !== undefined && { document }),
    ...(delay !== undefined && { retryAfter: delay }),
    grpc: statusOf(error).grpc,
  }
}

export const toError = ({ tag, message, document, retryAfter, grpc }: Failure): InferenceError =>
  fromHeaders({ tag, document, retryAfter }, new ExecutionFailed({ message }), { grpc })
