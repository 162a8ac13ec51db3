/** The check of `grpc.health.v1` on the connection of the calls, so that it fails where the connection does. */
import { fromBinary } from "@bufbuild/protobuf"
import { Result } from "effect"
import { GrpcCode } from "@nereid/core/internal/grpc/GrpcCode"
import { prefixLength } from "@nereid/core/internal/grpc/GrpcFrame"
import type { Cancel } from "@nereid/core/internal/request/Request"
import { HealthCheckResponse_ServingStatus as ServingStatus, HealthCheckResponseSchema } from "@nereid/protocol/health"
import type { Readiness } from "../channel/Channel.ts"
import type { GrpcConnection } from "./GrpcConnection.ts"
import type { GrpcOutcome } from "./GrpcUnaryCall.ts"

const path = "/grpc.health.v1.Health/Check"

/** Checks the whole server, whose name in the request is empty. */
export const check = (connection: GrpcConnection, timeoutMs: number, reply: (readiness: Readiness) => void): Cancel => {
  const emptyRequest = new Uint8Array(prefixLength)
  const call = connection.call(connection.headers(path), emptyRequest, timeoutMs, (outcome) => reply(read(outcome)))
  return () => call.cancel()
}

const read = (outcome: GrpcOutcome): Readiness => {
  if (Result.isFailure(outcome)) {
    const { code } = outcome.failure
    return code === GrpcCode.UNIMPLEMENTED || code === GrpcCode.NOT_FOUND ? "unknown" : "unreachable"
  }
  try {
    const { status } = fromBinary(HealthCheckResponseSchema, outcome.success.message)
    return status === ServingStatus.SERVING ? "ready" : "notReady"
  } catch {
    return "unknown"
  }
}
