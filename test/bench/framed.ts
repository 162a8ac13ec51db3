/**
 * A gRPC message behind its prefix. Alone in its file, so that the bare server loads nothing that makes messages: how often V8
 * collects its buffers depends on the size of its heap.
 */
import { frame } from "@nereid/core/internal/grpc/GrpcFrame"

export const framed = (message: Uint8Array): Buffer => Buffer.from(frame(message).buffer)
