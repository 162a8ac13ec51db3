/**
 * The status of each failure over both protocols: that of Triton, unless it says otherwise. Written independently of
 * the server's own table, so that a mistake in that table fails a test.
 */
import type { Tag } from "@nereid/core/Errors"

export const codes: { readonly [T in Tag]: { readonly http: number; readonly grpc: number } } = {
  InvalidRequest: { http: 400, grpc: 3 },
  // Triton's is 500, as for a wrong extent here.
  MalformedRequest: { http: 400, grpc: 13 },
  ModelNotFound: { http: 404, grpc: 5 },
  ModelNotReady: { http: 503, grpc: 14 },
  QueueFull: { http: 503, grpc: 14 },
  QueueTimeout: { http: 503, grpc: 14 },
  Unavailable: { http: 503, grpc: 14 },
  DeadlineExceeded: { http: 503, grpc: 4 },
  Cancelled: { http: 400, grpc: 1 },
  Unsupported: { http: 501, grpc: 12 },
  AlreadyExists: { http: 400, grpc: 6 },
  Unknown: { http: 400, grpc: 2 },
  ExecutionFailed: { http: 500, grpc: 13 },
  RegionNotFound: { http: 404, grpc: 5 },
  RegionExists: { http: 400, grpc: 6 },
  // Triton's is 500.
  RegionFailed: { http: 400, grpc: 13 },
  SequenceNotFound: { http: 400, grpc: 3 },
}
