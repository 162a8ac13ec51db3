/**
 * A raw connection to the gRPC port over node:http2: sends frames of any content, and returns the replies as received.
 * Without retries, checks or decoding.
 */
import { constants } from "node:http2"
import { tagHeader } from "@nereid/core/internal/wire/ErrorHeaders"
import { GRPCInferenceService } from "@nereid/protocol/grpc_service"
import { Http2Connection, open } from "./Http2Connection.ts"
import { within } from "./within.ts"

export interface GrpcCall {
  /** The name of an RPC of the service, or a whole path. Default ModelInfer. */
  readonly method?: string
  /** Whole frames or parts of them; each chunk is a separate write. */
  readonly chunks: ReadonlyArray<Uint8Array>
  readonly headers?: { readonly [name: string]: string }
  /** Whether the stream stays open behind the last chunk. Default false. */
  readonly open?: boolean
}

export interface GrpcReply {
  readonly httpStatus: number
  /** Undefined where the stream ended without one. */
  readonly code: number | undefined
  readonly message: string
  readonly tag: string | undefined
  readonly headers: { readonly [name: string]: unknown }
  /** All frames. */
  readonly body: Buffer
}

export class GrpcConnection extends Http2Connection {
  static async open(port: number): Promise<GrpcConnection> {
    return new GrpcConnection(await open(port))
  }

  call({ method = "ModelInfer", chunks, headers = {}, open = false }: GrpcCall): Promise<GrpcReply> {
    const stream = this.session.request({
      [constants.HTTP2_HEADER_METHOD]: "POST",
      [constants.HTTP2_HEADER_PATH]: method.startsWith("/") ? method : `/${GRPCInferenceService.typeName}/${method}`,
      "content-type": "application/grpc",
      te: "trailers",
      ...headers,
    })
    const body: Array<Buffer> = []
    let fields: { readonly [name: string]: unknown } = {}
    stream.on("error", () => {})
    stream.on("response", (headers) => (fields = { ...fields, ...headers }))
    stream.on("trailers", (trailers) => (fields = { ...fields, ...trailers }))
    stream.on("data", (chunk: Buffer) => body.push(chunk))
    const reply = new Promise<GrpcReply>((resolve) => {
      stream.on("close", () => resolve(replyOf(fields, Buffer.concat(body))))
    })
    for (const chunk of chunks) stream.write(chunk)
    if (!open) stream.end()
    return within(10_000, "an answer over gRPC", reply)
  }
}

const replyOf = (headers: GrpcReply["headers"], body: Buffer): GrpcReply => {
  const text = (name: string) => {
    const value = headers[name]
    return typeof value === "string" ? value : undefined
  }
  const code = text("grpc-status")
  return {
    httpStatus: Number(headers[":status"] ?? 0),
    code: code === undefined ? undefined : Number(code),
    message: decodeURIComponent(text("grpc-message") ?? ""),
    tag: text(tagHeader),
    headers,
    body,
  }
}

/** The messages of an answer. */
export const messages = (body: Buffer): ReadonlyArray<Uint8Array> => {
  const found: Array<Uint8Array> = []
  for (let position = 0; position < body.length;) {
    const length = body.readUInt32BE(position + 1)
    const end = position + 5 + length
    if (body[position] !== 0 || end > body.length) throw new Error("The answer is no sequence of gRPC messages")
    found.push(new Uint8Array(body.subarray(position + 5, end)))
    position = end
  }
  return found
}
