/** Request at a route of the HTTP port, and its headers about inference. */
import { Result } from "effect"
import { timeoutHeader } from "@nereid/core/internal/codec/json/BinaryExtension"
import { InvalidRequest } from "@nereid/core/Errors"
import type { LimitReports } from "../limit/LimitReports.ts"
import type { HeldMemory } from "../limit/MemoryBudget.ts"
import type { CallRecord } from "../log/CallRecord.ts"
import * as ForwardedHeaders from "../dispatch/ForwardedHeaders.ts"
import * as RequestPreparation from "../gateway/RequestPreparation.ts"
import type { IncomingRequest, OutgoingResponse } from "../port/HttpExchange.ts"
import { requestHeader as timingHeader, RequestTiming, responseHeader } from "../trace/RequestTiming.ts"
import type { DefectGuard } from "../port/DefectGuard.ts"
import * as MonotonicTime from "@nereid/core/internal/request/MonotonicTime"

export interface HttpCall {
  readonly request: IncomingRequest
  readonly response: OutgoingResponse
  readonly guard: DefectGuard
  /** Both empty on routes without a model; the version empty for the highest. */
  readonly model: { readonly name: string; readonly version: string }
  /** Empty where the path names none. */
  readonly repository: string
  /** Record of the call; undefined if none is kept. */
  readonly record: CallRecord | undefined
  /** Memory that the connection of the call holds. */
  readonly memory: HeldMemory
  readonly limits: LimitReports
}

export interface InferOptions {
  /** The largest body, in bytes, compressed and not. */
  readonly maxInputSize: number
  /** Undefined where no header becomes a parameter. */
  readonly forward: ForwardedHeaders.ForwardedHeaders | undefined
}

/** The first value of a header. */
export const single = (header: string | ReadonlyArray<string> | undefined): string | undefined =>
  typeof header === "string" || header === undefined ? header : header[0]

/** Returns the timing of the request, if its client asks for the header Server-Timing. */
export const timing = ({ request }: HttpCall): RequestTiming | undefined =>
  request.headers[timingHeader] === "1" ? new RequestTiming() : undefined

/** Adds the header Server-Timing to a response that has not begun. */
export const addTiming = ({ response }: HttpCall, timing: RequestTiming | undefined): void => {
  const value = timing?.value()
  if (value !== undefined && !response.headersSent) response.setHeader(responseHeader, value)
}

export interface Deadline {
  /** As MonotonicTime. */
  readonly at: number
  /** The client's own time, in milliseconds. */
  readonly timeout: number
}

/**
 * Returns the deadline, counted from the arrival `waited` milliseconds ago; undefined if the client sets none.
 */
export const deadline = (
  { request }: HttpCall,
  waited: number,
): Result.Result<Deadline | undefined, InvalidRequest> => {
  const text = single(request.headers[timeoutHeader])
  if (text === undefined) return Result.succeed(undefined)
  if (/^[0-9]{1,12}(\.[0-9]+)?$/.test(text)) {
    const timeout = Number(text)
    return Result.succeed({ at: MonotonicTime.millis() + timeout - waited, timeout })
  }
  const message = `${timeoutHeader} must be a number of milliseconds, got: ${text.slice(0, 40)}`
  return Result.fail(new InvalidRequest({ message }))
}

/** Returns the preparation of the call's inference requests, which runs before the gateway. */
export const preparation = (
  { request, record }: HttpCall,
  { forward }: InferOptions,
): RequestPreparation.RequestPreparation =>
  RequestPreparation.make(forward, record, request.rawHeaders, ForwardedHeaders.fromRaw)
