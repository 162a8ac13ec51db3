/** What a gRPC call is over HTTP/2, whatever it asks: its headers, and a message as a frame. */
import { GRPCInferenceService } from "@nereid/protocol/grpc_service"
import { type Address, print, scheme } from "../target/Address.ts"
import type { Fields } from "../http2/HeaderWriter.ts"
import { prefixLength } from "./ReplyMessages.ts"

/** The service that all models are asked through. */
export const service = `/${GRPCInferenceService.typeName}`

/** `metadata` with names in lower case. */
export const fields = (address: Address, path: string, metadata: Readonly<Record<string, string>>): Fields => [
  [":method", "POST"],
  [":scheme", scheme(address)],
  [":path", path],
  [":authority", print(address)],
  ["te", "trailers"],
  ["content-type", "application/grpc"],
  ["user-agent", "nereid-bench"],
  ...Object.entries(metadata),
]

/** A message behind its prefix: not compressed, and its length. */
export const frame = (message: Uint8Array): Buffer => {
  const bytes = Buffer.allocUnsafe(prefixLength + message.length)
  bytes[0] = 0
  bytes.writeUInt32BE(message.length, 1)
  bytes.set(message, prefixLength)
  return bytes
}
