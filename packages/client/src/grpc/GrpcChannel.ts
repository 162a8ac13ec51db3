/**
 * ModelInfer and ModelStreamInfer as a channel, directly on the connection: Connect's Transport interface would cost a
 * promise, an abort signal and two Headers for each call.
 */
import { Result } from "effect"
import { prefixLength } from "@nereid/core/internal/grpc/GrpcFrame"
import { fromTrailers } from "@nereid/core/internal/wire/ErrorTrailers"
import { ExecutionFailed, type InferenceError } from "@nereid/core/Errors"
import { fromGrpc } from "@nereid/core/internal/wire/ErrorStatus"
import { GrpcCode } from "@nereid/core/internal/grpc/GrpcCode"
import * as InferMessage from "@nereid/core/internal/codec/protobuf/InferMessage"
import type { WireRequest, WireResponse } from "@nereid/core/internal/wire/WireRequest"
import type { ServerChannel } from "../channel/Channel.ts"
import type { ClientSettings } from "../channel/ClientOptions.ts"
import type { CallHeaders } from "./CallHeaders.ts"
import { GrpcConnection } from "./GrpcConnection.ts"
import * as GrpcFailure from "./GrpcFailure.ts"
import * as GrpcHealth from "./GrpcHealth.ts"
import * as TraceParent from "../channel/TraceParent.ts"
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"

const path = "/inference.GRPCInferenceService/ModelInfer"

const streamPath = "/inference.GRPCInferenceService/ModelStreamInfer"

/**
 * Flow-control window of streams, in bytes, so that a slow reader slows the model. Streams use a separate session,
 * because a session's window covers all its calls.
 */
const streamWindow = 64 * 1024

/** Servers that know it end the stream with the status of its first failure, which says more than a text in band. */
const errorMode = { triton_grpc_error: "true" }

export const make = (settings: ClientSettings): ServerChannel => {
  const connection = new GrpcConnection(settings)
  const streams = new GrpcConnection(settings, streamWindow)
  const headers = connection.headers(path)
  const streamHeaders = streams.repeatedHeaders(streamPath, errorMode)
  return {
    infer: (wire, timeoutMs, reply) => {
      const call = connection.call(
        traced(headers, wire),
        InferMessage.encode(wire, prefixLength, Buffer.allocUnsafe),
        timeoutMs,
        (outcome) => {
          if (Result.isFailure(outcome)) {
            return reply(Result.fail(inferenceError(outcome.failure)), GrpcFailure.causeOf(outcome.failure))
          }
          reply(read(outcome.success.message))
        },
      )
      return () => call.cancel()
    },
    stream: (wire, timeoutMs, receiver) => {
      const call = streams.stream(traced(streamHeaders, wire), InferMessage.encode(wire, prefixLength), timeoutMs, {
        message: (message) => {
          const outcome = readStreamed(message)
          if (Result.isSuccess(outcome)) return receiver.response(outcome.success)
          call.cancel()
          receiver.end(Result.fail(outcome.failure))
        },
        end: (outcome) => {
          const cause = Result.isFailure(outcome) ? GrpcFailure.causeOf(outcome.failure) : undefined
          receiver.end(Result.mapError(outcome, inferenceError), cause)
        },
      })
      return { cancel: () => call.cancel(), flow: (isPaused) => (isPaused ? call.pause() : call.resume()) }
    },
    ready: (timeoutMs, reply) => GrpcHealth.check(connection, timeoutMs, reply),
    close: () => Promise.all([connection.close(), streams.close()]).then(() => {}),
  }
}

const traced = (headers: CallHeaders, wire: WireRequest): CallHeaders =>
  wire.parent === undefined ? headers : headers.with(TraceParent.headers(wire))

const read = (message: Uint8Array): Result.Result<WireResponse, InferenceError> => {
  try {
    return Result.succeed(InferMessage.decode(message))
  } catch (error) {
    return Result.fail(new ExecutionFailed({ message: `cannot decode the server's response: ${errorMessage(error)}` }))
  }
}

/** Decodes a response of a stream, or the failure in its place. */
const readStreamed = (message: Uint8Array): Result.Result<WireResponse, InferenceError> => {
  try {
    const { error, response } = InferMessage.decodeStreamed(message)
    return error === "" ? Result.succeed(response) : Result.fail(fromGrpc(GrpcCode.INTERNAL, error))
  } catch (error) {
    return Result.fail(new ExecutionFailed({ message: `cannot decode the server's response: ${errorMessage(error)}` }))
  }
}

const inferenceError = ({ code, message, metadata }: GrpcFailure.GrpcFailure): InferenceError =>
  fromTrailers(code, message, (name) => GrpcFailure.single(metadata[name]))
