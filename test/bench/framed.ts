/**
 * A gRPC message with its prefix. In a separate file, so that the bare server does not load a protobuf library: the
 * frequency of V8's garbage collection depends on the heap size.
 */
import { frame } from "@nereid/core/internal/grpc/GrpcFrame"

export const framed = (message: Uint8Array): Buffer => Buffer.from(frame(message).buffer)
