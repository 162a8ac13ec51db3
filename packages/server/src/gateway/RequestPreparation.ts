/**
 * What every inference passes between its codec and the gateway, whichever way it came: headers of its call become its
 * parameters, and it goes on the call's record.
 */
import { Result } from "effect"
import type { InvalidRequest } from "@nereid/core/Errors"
import type { WireRequest } from "@nereid/core/internal/wire/WireRequest"
import type { ForwardedHeaders, Headers } from "../dispatch/ForwardedHeaders.ts"
import type { CallRecord } from "../log/CallRecord.ts"

export type Prepare = (wire: WireRequest) => Result.Result<WireRequest, InvalidRequest>

/** For the requests of one call; `headers` reads what its transport has of them, `source`. */
export const make = <S>(
  forward: ForwardedHeaders | undefined,
  record: CallRecord | undefined,
  source: S,
  headers: (source: S) => Headers,
): Prepare => {
  if (forward === undefined && record === undefined) return Result.succeed
  return prepared(forward, record, source, headers)
}

/** Apart, so that a call for which nothing is to be done makes no closure. */
const prepared =
  <S>(
    forward: ForwardedHeaders | undefined,
    record: CallRecord | undefined,
    source: S,
    headers: (source: S) => Headers,
  ): Prepare =>
  (wire) => {
    const forwarded = forward === undefined ? Result.succeed(wire) : forward(wire, headers(source))
    return record === undefined ? forwarded : Result.map(forwarded, record.asks)
  }
