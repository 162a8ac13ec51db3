/** Whether the response to an inference is compressed. GrpcCompression.ts compresses, for Connect. */
import type { CallHeaders } from "./Call.ts"

/** Compression effort of responses. */
export type ResponseCompression = "none" | "low" | "medium" | "high"

/** Tells whether a gRPC client with these headers accepts compressed responses. */
export const isAccepted = (headers: CallHeaders): boolean =>
  /\b(gzip|deflate|br)\b/.test(String(headers["grpc-accept-encoding"] ?? ""))
