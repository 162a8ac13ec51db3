/** A model over gRPC, by ModelInfer or, `streaming`, by ModelStreamInfer. */
import {
  create,
  type DescMessage,
  type DescMethodUnary,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf"
import * as InferMessage from "@nereid/core/internal/codec/protobuf/InferMessage"
import type { WireRequest } from "@nereid/core/internal/wire/WireRequest"
import {
  GRPCInferenceService,
  ModelInferRequestSchema,
  ModelInferResponseSchema,
  ModelStreamInferResponseSchema,
} from "@nereid/protocol/grpc_service"
import type { Address } from "../target/Address.ts"
import type { ModelReply, ModelClient, ModelName } from "../target/ModelClient.ts"
import { GrpcClient } from "./GrpcClient.ts"
import * as GrpcRequest from "./GrpcRequest.ts"
import * as GrpcStream from "./GrpcStream.ts"
import * as GrpcUnary from "./GrpcUnary.ts"

export interface GrpcModelOptions {
  readonly model: ModelName
  readonly streaming: boolean
  /** Sent with every call; names in lower case. */
  readonly headers: Readonly<Record<string, string>>
}

export const make = (address: Address, { model, streaming, headers }: GrpcModelOptions): ModelClient => {
  const client = new GrpcClient(address, headers)

  const { modelConfig, modelInfer, modelMetadata, modelStatistics, modelStreamInfer } = GRPCInferenceService.method

  const call = async <I extends DescMessage, O extends DescMessage>(
    { name, input, output }: DescMethodUnary<I, O>,
    init: MessageInitShape<I>,
  ): Promise<MessageShape<O>> => {
    const [message = Buffer.alloc(0)] = await client.call(name, toBinary(input, create(input, init)))
    return fromBinary(output, message)
  }
  const optional = <A>(reply: Promise<A>): Promise<A | undefined> => reply.catch(() => undefined)

  return {
    metadata: () => call(modelMetadata, model),
    config: () => optional(call(modelConfig, model).then(({ config }) => config)),
    statistics: () => optional(call(modelStatistics, model)),
    infer: async (request) =>
      streaming
        ? replyOf(await client.call(modelStreamInfer.name, streamMessage(request).message))
        : unaryReplyOf(await client.call(modelInfer.name, InferMessage.encode(request, 0))),
    target: ([first, ...others], traits) => {
      if (streaming) {
        const prepare = ({ request, replyLength }: typeof first) => ({ ...streamMessage(request), replyLength })
        const requests = [prepare(first), ...others.map(prepare)] as const
        return GrpcStream.target(address, { metadata: headers, requests, ...traits })
      }
      const prepare = ({ request, replyLength }: typeof first) => ({
        message: InferMessage.encode(request, 0),
        replyLength,
      })
      const requests = [prepare(first), ...others.map(prepare)] as const
      return GrpcUnary.target(address, {
        path: `${GrpcRequest.service}/${modelInfer.name}`,
        metadata: headers,
        requests,
      })
    },
    close: () => client.close(),
  }
}

/** Encodes a message with a placeholder for its id. The offset is after the fields that precede the id. */
const streamMessage = (request: WireRequest): { readonly message: Uint8Array; readonly idOffset: number } => {
  const { modelName, modelVersion } = request
  const before = toBinary(ModelInferRequestSchema, create(ModelInferRequestSchema, { modelName, modelVersion }))
  const message = InferMessage.encode({ ...request, id: GrpcStream.idPlaceholder }, 0)
  // The tag and length of the id are a byte each.
  return { message, idOffset: before.length + 2 }
}

const unaryReplyOf = (messages: ReadonlyArray<Uint8Array>): ModelReply => {
  const [message, ...others] = messages
  if (message === undefined || others.length > 0) {
    throw new Error(`ModelInfer: ${messages.length} messages in the response, expected one`)
  }
  return { responses: [InferMessage.decode(message)], length: message.length }
}

const replyOf = (messages: ReadonlyArray<Uint8Array>): ModelReply => {
  const responses = messages.map((bytes) => {
    const { errorMessage, inferResponse } = fromBinary(ModelStreamInferResponseSchema, bytes)
    if (errorMessage !== "") throw new Error(`ModelStreamInfer: ${errorMessage}`)
    if (inferResponse === undefined)
      throw new Error("ModelStreamInfer: the message has neither a response nor an error")
    return InferMessage.decode(toBinary(ModelInferResponseSchema, inferResponse))
  })
  return { responses, length: messages[0]?.length ?? 0 }
}
