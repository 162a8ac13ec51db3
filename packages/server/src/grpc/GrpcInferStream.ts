/**
 * ModelStreamInfer as Connect serves it: passes messages to an InferStream and its results back. After a half-close,
 * requests in flight finish. After a stop they do too, and the stream then ends as unavailable. A caller that
 * disconnects cancels all its requests.
 */
import type { HandlerContext } from "@connectrpc/connect"
import { Result } from "effect"
import type { InferenceError } from "@nereid/core/Errors"
import * as ProtobufCodec from "@nereid/core/internal/codec/protobuf/ProtobufCodec"
import type { ModelInferRequest, ModelStreamInferResponse } from "@nereid/protocol/grpc_service"
import type { ForwardedHeaders } from "../dispatch/ForwardedHeaders.ts"
import type { Gateway } from "../gateway/Gateway.ts"
import * as RequestPreparation from "../gateway/RequestPreparation.ts"
import * as GrpcMemory from "./GrpcMemory.ts"
import * as GrpcRecords from "./GrpcRecords.ts"
import { shuttingDown } from "./CallStatus.ts"
import { errorMode, InferStream } from "./InferStream.ts"
import * as MonotonicTime from "@nereid/core/internal/request/MonotonicTime"

export interface ServeOptions {
  readonly gateway: Gateway
  /** Undefined if no header becomes a parameter. */
  readonly forward: ForwardedHeaders | undefined
  /** The error that ends the stream for a failure. */
  readonly toError: (error: InferenceError) => Error
}

export async function* serve(
  { gateway, forward, toError }: ServeOptions,
  requests: AsyncIterable<ModelInferRequest>,
  context: HandlerContext,
): AsyncGenerator<ModelStreamInferResponse> {
  const timeout = context.timeoutMs()
  const deadline = timeout === undefined ? undefined : MonotonicTime.millis() + timeout
  /** Wakes the two loops, one of which reads and one of which writes. */
  let waiting: Array<() => void> = []
  const endsAtError = context.requestHeader.get(errorMode) === "true"
  const stream = new InferStream(
    gateway,
    { deadline, endsAtError },
    () => {
      const woken = waiting
      waiting = []
      for (const wake of woken) wake()
    },
    context.values.get(GrpcMemory.memory),
  )
  const change = () => new Promise<void>((resolve) => void waiting.push(resolve))
  const prepare = RequestPreparation.make(
    forward,
    context.values.get(GrpcRecords.record),
    context.requestHeader,
    (header) => header,
  )
  let broken: { readonly error: unknown } | undefined
  let halfClosed = false
  // Also called elsewhere, because the generator does not reach its end if its last message is never taken.
  const release = () => {
    context.signal.removeEventListener("abort", release)
    gateway.endingStreams.removeEventListener("abort", onStop)
    stream.cancel()
  }
  const onStop = () => stream.end()
  const read = async () => {
    try {
      const messages = requests[Symbol.asyncIterator]()
      for (;;) {
        while (stream.isFull && !stream.isCancelled) await change()
        if (stream.isCancelled) return
        const next = await messages.next()
        if (next.done === true) {
          halfClosed = true
          return stream.end()
        }
        const { id, request } = ProtobufCodec.fromStreamMessage(next.value)
        stream.submit(id, Result.flatMap(request, prepare))
      }
    } catch (error) {
      broken = { error }
      stream.cancel()
    }
  }

  context.signal.addEventListener("abort", release, { once: true })
  gateway.endingStreams.addEventListener("abort", onStop, { once: true })
  try {
    if (gateway.endingStreams.aborted) onStop()
    else void read()
    while (!stream.isOver) {
      const result = stream.take()
      if (result === undefined) {
        await change()
        continue
      }
      // The reader may be waiting for the room of this result.
      for (const wake of waiting.splice(0)) wake()
      const failure = stream.endingFailure(result)
      if (failure !== undefined) throw toError(failure)
      const { id, outcome, isFinal } = result
      yield ProtobufCodec.toStreamMessage(ProtobufCodec.streamResponse(id, outcome, isFinal))
    }
    if (broken !== undefined) throw broken.error
    context.signal.throwIfAborted()
    if (!halfClosed) throw toError(shuttingDown)
  } finally {
    release()
  }
}
