/**
 * ModelInfer as a channel, straight on the connection: Connect's Transport interface would cost a promise, an abort
 * signal and two Headers a call.
 */
import { Result } from "effect"
import { ExecutionFailed, fromGrpc, fromTag, type InferenceError, tagHeader } from "@nereid/core/Errors"
import * as InferMessage from "@nereid/core/InferMessage"
import type { Channel } from "./Channel.ts"
import { prefixLength } from "./GrpcCall.ts"
import type { GrpcConnection } from "./GrpcConnection.ts"
import type { GrpcFailure } from "./GrpcStatus.ts"

const path = "/inference.GRPCInferenceService/ModelInfer"
const noHeaders = {}

export const make = (connection: GrpcConnection): Channel => ({
  infer: (wire, timeoutMs, reply) =>
    connection.call(path, InferMessage.encode(wire, prefixLength), noHeaders, timeoutMs, (outcome) => {
      if (Result.isFailure(outcome)) return reply(Result.fail(inferenceError(outcome.failure)))
      reply(
        Result.try({
          try: () => InferMessage.decode(outcome.success.message),
          catch: (error) => new ExecutionFailed({ message: `the server's reply cannot be read: ${text(error)}` }),
        }),
      )
    }),
  close: () => connection.close(),
})

const inferenceError = ({ code, message, metadata }: GrpcFailure): InferenceError => {
  const tag = metadata[tagHeader]
  return (typeof tag === "string" ? fromTag(tag, message) : undefined) ?? fromGrpc(code, message)
}

const text = (error: unknown) => (error instanceof Error ? error.message : String(error))
