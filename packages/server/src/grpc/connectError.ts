/** The status of a call as the error with which Connect ends it, in any of its protocols. */
import { ConnectError } from "@connectrpc/connect"
import { shorten } from "@nereid/core/internal/grpc/GrpcStatus"
import { trailersOf } from "@nereid/core/internal/wire/ErrorTrailers"
import type { CallStatus } from "./CallStatus.ts"

export const connectError = (status: CallStatus): ConnectError =>
  new ConnectError(shorten(status.message), status.code, trailersOf(status))
