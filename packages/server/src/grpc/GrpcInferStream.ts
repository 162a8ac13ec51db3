/**
 * ModelStreamInfer as Connect serves it: messages in and out of an InferStream, which knows what they mean. Half-close lets
 * requests in flight finish, a stop does too and then ends the stream as unavailable; a caller that goes away takes back
 * all it has asked.
 */
import type { HandlerContext } from "@connectrpc/connect"
import { create, type MessageInitShape } from "@bufbuild/protobuf"
import { Result } from "effect"
import type { InferenceError } from "@nereid/core/Errors"
import * as ProtobufCodec from "@nereid/core/ProtobufCodec"
import {
  InferParameterSchema,
  type ModelInferRequest,
  ModelInferResponseSchema,
  type ModelStreamInferResponseSchema,
} from "@nereid/protocol/grpc_service"
import type { ForwardedHeaders } from "../ForwardedHeaders.ts"
import type { Gateway } from "../Gateway.ts"
import * as Preparation from "../Preparation.ts"
import * as GrpcRecords from "./GrpcRecords.ts"
import { shuttingDown } from "./GrpcStatus.ts"
import { InferStream, type StreamResult } from "./InferStream.ts"

type Message = MessageInitShape<typeof ModelStreamInferResponseSchema>

/** With this header, the first failure is that of the stream, in its status. */
const errorModeHeader = "triton_grpc_error"

export interface InferStreamOptions {
  readonly gateway: Gateway
  /** Undefined where no header becomes a parameter. */
  readonly forward: ForwardedHeaders | undefined
  /** What ends the stream with a failure of ours. */
  readonly toError: (error: InferenceError) => Error
}

export async function* serve(
  { gateway, forward, toError }: InferStreamOptions,
  requests: AsyncIterable<ModelInferRequest>,
  context: HandlerContext,
): AsyncGenerator<Message> {
  const timeout = context.timeoutMs()
  const deadline = timeout === undefined ? undefined : Date.now() + timeout
  const stream = new InferStream(gateway, deadline)
  const prepare = Preparation.make(forward, context.values.get(GrpcRecords.record), () => context.requestHeader)
  const endsAtError = context.requestHeader.get(errorModeHeader) === "true"
  let broken: { readonly error: unknown } | undefined
  let halfClosed = false
  // Not only at the end of this generator: it never has one where its last message is never taken.
  const release = () => {
    context.signal.removeEventListener("abort", release)
    gateway.stopping.removeEventListener("abort", onStop)
    stream.cancel()
  }
  const onStop = () => stream.end()
  const read = async () => {
    try {
      const messages = requests[Symbol.asyncIterator]()
      while (await stream.room()) {
        const next = await messages.next()
        if (next.done === true) {
          halfClosed = true
          return stream.end()
        }
        stream.ask(next.value.id, Result.flatMap(ProtobufCodec.fromMessage(next.value), prepare))
      }
    } catch (error) {
      broken = { error }
      stream.cancel()
    }
  }

  context.signal.addEventListener("abort", release, { once: true })
  gateway.stopping.addEventListener("abort", onStop, { once: true })
  try {
    if (gateway.stopping.aborted) onStop()
    else void read()
    for (let result = await stream.next(); result !== undefined; result = await stream.next()) {
      if (Result.isFailure(result.outcome)) {
        const { failure } = result.outcome
        // The queue may see the stream's deadline before Connect does; it is the end of the stream all the same.
        const isLate = failure._tag === "DeadlineExceeded" && deadline !== undefined && deadline <= Date.now()
        if (endsAtError || isLate) throw toError(failure)
      }
      yield message(result)
    }
    if (broken !== undefined) throw broken.error
    context.signal.throwIfAborted()
    if (!halfClosed) throw toError(shuttingDown)
  } finally {
    release()
  }
}

const message = ({ id, outcome, isFinal }: StreamResult): Message => {
  if (Result.isFailure(outcome)) return { errorMessage: outcome.failure.message, inferResponse: final({ id }, true) }
  return { inferResponse: final(ProtobufCodec.toMessage(outcome.success), isFinal) }
}

const final = (response: MessageInitShape<typeof ModelInferResponseSchema>, isFinal: boolean) => {
  const finished = create(ModelInferResponseSchema, response)
  finished.parameters["triton_final_response"] = create(InferParameterSchema, {
    parameterChoice: { case: "boolParam", value: isFinal },
  })
  return finished
}
