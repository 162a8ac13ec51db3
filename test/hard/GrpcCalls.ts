/** Raw gRPC calls of the attacks, over node:http2. */
import { connect, type ClientHttp2Session } from "node:http2"
import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf"
import { GRPCInferenceService } from "@nereid/protocol/grpc_service"
import * as Http2Frame from "../conformance/fuzz/Http2Frame.ts"

const { typeName, method } = GRPCInferenceService

export const headers = {
  ":method": "POST",
  ":path": `/${typeName}/${method.modelInfer.name}`,
  "content-type": "application/grpc",
  te: "trailers",
}

/** The headers of a call as the block of a HEADERS frame, for attacks that write frames themselves. */
export const headerBlock = Http2Frame.headerBlock({ ":scheme": "http", ":authority": "localhost", ...headers })

type Parameters = MessageInitShape<typeof method.modelInfer.input>["parameters"]

/** A message with the prefix of its frame: a request with one number as its input. */
export const framed = (
  modelName: string,
  name: string,
  value: number,
  { shape = [1n], parameters = {} }: { readonly shape?: Array<bigint>; readonly parameters?: Parameters } = {},
): Uint8Array => {
  const message = toBinary(
    method.modelInfer.input,
    create(method.modelInfer.input, {
      modelName,
      parameters,
      inputs: [{ name, datatype: "INT32", shape }],
      rawInputContents: [new Uint8Array(Int32Array.of(value).buffer)],
    }),
  )
  const prefix = Buffer.alloc(5)
  prefix.writeUInt32BE(message.length, 1)
  return Buffer.concat([prefix, message])
}

/** A request for `count` bytes. */
export const request = (count: number): Uint8Array => framed("zeros", "COUNT", count)

/** A request that takes so many milliseconds. */
export const slowRequest = (milliseconds: number): Uint8Array => framed("slow", "MILLISECONDS", milliseconds)

/** A request that adds a value to the sum of a sequence. */
export const sequenceRequest = (
  id: bigint,
  value: number,
  { isStart, isEnd }: { readonly isStart: boolean; readonly isEnd: boolean },
): Uint8Array => {
  const flag = (value: boolean) => ({ parameterChoice: { case: "boolParam" as const, value } })
  return framed("sums", "VALUE", value, {
    parameters: {
      sequence_id: { parameterChoice: { case: "int64Param", value: id } },
      ...(isStart && { sequence_start: flag(true) }),
      ...(isEnd && { sequence_end: flag(true) }),
    },
  })
}

export const open = (port: number): ClientHttp2Session => connect(`http://localhost:${port}`).on("error", () => {})

export interface Outcome {
  /** The gRPC status, or "reset" without one. */
  readonly status: string
  readonly message: string
  /** All frames. */
  readonly body: Uint8Array
}

/** `timeout` is a header of gRPC, such as 100m. */
export const call = (session: ClientHttp2Session, message: Uint8Array, timeout?: string): Promise<Outcome> =>
  new Promise((resolve) => {
    const chunks: Array<Uint8Array> = []
    let outcome: Outcome = { status: "reset", message: "", body: new Uint8Array() }
    if (session.destroyed || session.closed) return resolve(outcome)
    const stream = session.request(timeout === undefined ? headers : { ...headers, "grpc-timeout": timeout })
    const note = (fields: { readonly [name: string]: unknown }) => {
      const status = fields["grpc-status"]
      if (typeof status === "string") outcome = { ...outcome, status, message: String(fields["grpc-message"] ?? "") }
    }
    stream
      .on("response", note)
      .on("trailers", note)
      .on("data", (chunk: Buffer) => chunks.push(chunk))
      .on("error", () => {})
    stream.on("close", () => resolve({ ...outcome, body: Buffer.concat(chunks) }))
    stream.end(message)
  })

/** Begins a call and cancels it at once. */
export const cancelled = (session: ClientHttp2Session, message: Uint8Array): void => {
  if (session.destroyed || session.closed) return
  const stream = session.request(headers)
  stream.on("error", () => {})
  stream.write(message)
  stream.close(8)
}
