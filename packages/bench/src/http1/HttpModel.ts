/** A model over HTTP/1.1, its tensors as binary data or, `json`, as text. */
import { type DescMessage, fromJson, type JsonValue, type MessageShape } from "@bufbuild/protobuf"
import * as BinaryExtension from "@nereid/core/internal/codec/json/BinaryExtension"
import type { WireRequest } from "@nereid/core/internal/wire/WireRequest"
import { ModelMetadataResponseSchema, ModelStatisticsResponseSchema } from "@nereid/protocol/grpc_service"
import { ModelConfigSchema } from "@nereid/protocol/model_config"
import { Result } from "effect"
import type { Address } from "../target/Address.ts"
import type { ModelClient, ModelName } from "../target/ModelClient.ts"
import * as HttpClient from "./HttpClient.ts"
import * as HttpInfer from "./HttpInfer.ts"
import * as HttpRequest from "./HttpRequest.ts"
import { header } from "./ReplyReader.ts"

export interface HttpModelOptions {
  readonly model: ModelName
  readonly json: boolean
  /** Path before `/v2`, without a trailing slash. */
  readonly path: string
  /** Sent with every request. */
  readonly headers: Readonly<Record<string, string>>
}

export const make = (address: Address, { model, json, path, headers }: HttpModelOptions): ModelClient => {
  const version = model.version === "" ? "" : `/versions/${encodeURIComponent(model.version)}`
  const base = `${path}/v2/models/${encodeURIComponent(model.name)}${version}`

  const get = async <D extends DescMessage>(schema: D, of: string): Promise<MessageShape<D>> => {
    const request = { method: "GET", path: `${base}${of}`, headers, body: new Uint8Array() } as const
    const reply = await HttpClient.send(address, request)
    const problem = HttpRequest.problem(reply)
    if (problem !== undefined) throw new Error(`GET ${request.path}: ${problem}`)
    const document: JsonValue = JSON.parse(reply.body.toString())
    return fromJson(schema, document, { ignoreUnknownFields: true })
  }
  const optional = <A>(reply: Promise<A>): Promise<A | undefined> => reply.catch(() => undefined)

  const encode = (request: WireRequest): HttpRequest.HttpRequest => {
    const inferRequest = { method: "POST", path: `${base}/infer` } as const
    if (json) {
      const body = Result.getOrThrowWith(BinaryExtension.encodeJsonRequest(request), () => {
        const inputs = request.inputs.map(({ name, datatype }) => `${name} (${datatype})`).join(", ")
        return new Error(`the inputs ${inputs} cannot be sent as JSON: use binary tensors`)
      })
      return { ...inferRequest, headers: { "content-type": "application/json", ...headers }, body }
    }
    const { headerLength, body } = BinaryExtension.encodeRequest(request)
    const statisticsRequest = {
      "content-type": "application/octet-stream",
      [BinaryExtension.headerLengthHeader]: String(headerLength),
    }
    return { ...inferRequest, headers: { ...statisticsRequest, ...headers }, body }
  }

  return {
    metadata: () => get(ModelMetadataResponseSchema, ""),
    config: () => optional(get(ModelConfigSchema, "/config")),
    statistics: () => optional(get(ModelStatisticsResponseSchema, "/stats")),
    infer: async (request) => {
      const reply = await HttpClient.send(address, encode(request))
      const problem = HttpRequest.problem(reply)
      if (problem !== undefined) throw new Error(`POST ${base}/infer: ${problem}`)
      const response = BinaryExtension.parseHeaderLength(header(reply.head, BinaryExtension.headerLengthHeader)).pipe(
        Result.flatMap((length) => BinaryExtension.decodeResponse(reply.body, length)),
        Result.getOrThrowWith(({ message }) => new Error(`POST ${base}/infer: cannot decode the response: ${message}`)),
      )
      return { responses: [response], length: reply.length }
    },
    target: ([first, ...others]) => {
      const prepare = ({ request, replyLength }: typeof first) => ({ request: encode(request), replyLength })
      return HttpInfer.target(address, [prepare(first), ...others.map(prepare)])
    },
    close: () => {},
  }
}
