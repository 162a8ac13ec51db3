/**
 * The step of every inference between its codec and the gateway, for all transports: headers of the call become
 * parameters of the request, and the call's record takes note of it.
 */
import { Result } from "effect"
import type { InvalidRequest } from "@nereid/core/Errors"
import type { WireRequest } from "@nereid/core/internal/wire/WireRequest"
import type { ForwardedHeaders, HeaderEntries } from "../dispatch/ForwardedHeaders.ts"
import type { CallRecord } from "../log/CallRecord.ts"

/** Prepares one request of a call. */
export type RequestPreparation = (wire: WireRequest) => Result.Result<WireRequest, InvalidRequest>

/**
 * The preparation of a call's requests. `headers` reads the call's headers from `source`, which its transport provides.
 */
export const make = <S>(
  forward: ForwardedHeaders | undefined,
  record: CallRecord | undefined,
  source: S,
  headers: (source: S) => HeaderEntries,
): RequestPreparation => {
  if (forward === undefined && record === undefined) return Result.succeed
  return prepared(forward, record, source, headers)
}

/** A separate function, so that a call without headers and record allocates no closure. */
const prepared =
  <S>(
    forward: ForwardedHeaders | undefined,
    record: CallRecord | undefined,
    source: S,
    headers: (source: S) => HeaderEntries,
  ): RequestPreparation =>
  (wire) => {
    const forwarded = forward === undefined ? Result.succeed(wire) : forward(wire, headers(source))
    return record === undefined ? forwarded : Result.map(forwarded, record.addRequest)
  }
