/** The parts of a gRPC request over HTTP/2, for any RPC: its headers, and its message as a frame. */
import * as GrpcContentType from "@nereid/core/internal/grpc/GrpcContentType"
import * as GrpcFrame from "@nereid/core/internal/grpc/GrpcFrame"
import { GRPCInferenceService } from "@nereid/protocol/grpc_service"
import { type Address, print, scheme } from "../target/Address.ts"
import type { FieldList } from "../http2/Http2Connection.ts"

/** The service of all models. */
export const service = `/${GRPCInferenceService.typeName}`

/** `metadata` with names in lower case. */
export const fields = (address: Address, path: string, metadata: Readonly<Record<string, string>>): FieldList =>
  Object.entries({
    ":method": "POST",
    ":scheme": scheme(address),
    ":path": path,
    ":authority": print(address),
    te: "trailers",
    "content-type": GrpcContentType.plain,
    "user-agent": "nereid-bench",
    ...metadata,
  }).flat()

/** A message behind its prefix. */
export const frame = (message: Uint8Array): Buffer => Buffer.from(GrpcFrame.frame(message).buffer)
