/** The `grpc-timeout` header: at most eight digits and a unit. */
import { Result } from "effect"
import { GrpcCode } from "@nereid/core/Errors"
import type { GrpcStatus } from "./GrpcStatus.ts"

const milliseconds: { readonly [unit: string]: number } = { H: 3_600_000, M: 60_000, S: 1_000, m: 1, u: 1e-3, n: 1e-6 }

/** In milliseconds; undefined where the header is not one. */
export const parse = (header: string): number | undefined => {
  const digits = header.slice(0, -1)
  const unit = milliseconds[header.slice(-1)]
  return unit === undefined || !/^[0-9]{1,8}$/.test(digits) ? undefined : Number(digits) * unit
}

/** When a call with this header is over, in milliseconds since the epoch; undefined where it has none. */
export const deadline = (header: string | undefined): Result.Result<number | undefined, GrpcStatus> => {
  if (header === undefined) return noDeadline
  const timeout = parse(header)
  if (timeout !== undefined) return Result.succeed(Date.now() + timeout)
  const message = `invalid grpc-timeout '${header}'`
  return Result.fail({ code: GrpcCode.INVALID_ARGUMENT, message, tag: "InvalidRequest" })
}

const noDeadline = Result.succeed(undefined)
