/**
 * ModelInfer as a channel, straight on the connection: Connect's Transport interface would cost a promise, an abort
 * signal and two Headers a call.
 */
import { Result } from "effect"
import { ExecutionFailed, fromGrpc, fromTag, type InferenceError, tagHeader } from "@nereid/core/Errors"
import * as InferMessage from "@nereid/core/InferMessage"
import type { WireResponse } from "@nereid/core/WireRequest"
import type { Channel } from "./Channel.ts"
import { prefixLength } from "./GrpcCall.ts"
import type { GrpcConnection } from "./GrpcConnection.ts"
import type { GrpcFailure } from "./GrpcStatus.ts"

const path = "/inference.GRPCInferenceService/ModelInfer"

export const make = (connection: GrpcConnection): Channel => {
  const headers = connection.headers(path)
  return {
    infer: (wire, timeoutMs, reply) => {
      const call = connection.call(
        headers,
        InferMessage.encode(wire, prefixLength, Buffer.allocUnsafe),
        timeoutMs,
        (outcome) => {
          if (Result.isFailure(outcome)) return reply(Result.fail(inferenceError(outcome.failure)))
          reply(read(outcome.success.message))
        },
      )
      return () => call.cancel()
    },
    close: () => connection.close(),
  }
}

const read = (message: Uint8Array): Result.Result<WireResponse, InferenceError> => {
  try {
    return Result.succeed(InferMessage.decode(message))
  } catch (error) {
    return Result.fail(new ExecutionFailed({ message: `the server's reply cannot be read: ${text(error)}` }))
  }
}

const inferenceError = ({ code, message, metadata }: GrpcFailure): InferenceError => {
  const tag = metadata[tagHeader]
  return (typeof tag === "string" ? fromTag(tag, message) : undefined) ?? fromGrpc(code, message)
}

const text = (error: unknown) => (error instanceof Error ? error.message : String(error))
