/**
 * Limits the memory of incomplete messages that Connect collects, by counting their bytes before Connect reads them. A
 * message that takes too long, or exceeds the budget, is cut off without an error message. A stream may be idle between
 * messages.
 */
import type { IncomingMessage } from "node:http"
import type { Http2ServerRequest } from "node:http2"
import { ErrorCode } from "@nereid/http2/internal/frame/ErrorCode"
import { Envelopes } from "./Envelopes.ts"
import type { LimitReports } from "../limit/LimitReports.ts"
import type { HeldMemory } from "../limit/MemoryBudget.ts"
import * as ReceiveRate from "../limit/ReceiveRate.ts"
import * as Timer from "../port/Timer.ts"
import { isText, TextEnvelopes } from "./TextEnvelopes.ts"

export interface TimeLimit {
  /** Maximum time of a message, in milliseconds. */
  readonly timeout: number
  readonly reports: LimitReports
}

export interface ReceiveLimits extends TimeLimit {
  /** Memory that the connection holds. */
  readonly memory: HeldMemory
}

/** Ends a request whose body does not arrive in time. Its reader applies the other limits. */
export const limitTime = (request: Http2ServerRequest, { timeout, reports }: TimeLimit): void => {
  const timer = Timer.start(() => expire(request, reports), timeout)
  const stop = () => clearTimeout(timer)
  request.stream.on("end", stop).on("close", stop)
}

export const limitReceiving = (
  request: IncomingMessage | Http2ServerRequest,
  { timeout, memory, reports }: ReceiveLimits,
  isStream: boolean,
): void => {
  const body = "stream" in request ? request.stream : request
  const onLate = () => {
    stopTiming()
    expire(request, reports)
  }
  const envelopes = envelopesOf(request.headers["content-type"])
  let received = 0
  let held = 0
  let timer: NodeJS.Timeout | undefined
  let rate: { readonly stop: () => void } | undefined
  const stopTiming = () => {
    clearTimeout(timer)
    rate?.stop()
    rate = undefined
  }
  const hold = (bytes: number) => {
    if (bytes <= held) memory.give(held - bytes)
    else if (memory.take(bytes - held) !== undefined) return cutOff(request)
    held = bytes
  }
  const release = () => {
    stopTiming()
    hold(0)
  }
  const count = (chunk: Uint8Array) => {
    received += chunk.length
    if (envelopes === undefined) {
      rate ??= ReceiveRate.watch(() => received, onLate)
      return hold(received)
    }
    const wasWhole = envelopes.incomplete === 0
    envelopes.add(chunk)
    hold(envelopes.incomplete)
    if (envelopes.incomplete === 0) return stopTiming()
    if (wasWhole && (isStream || envelopes.count > 0)) timer = Timer.start(onLate, timeout)
    rate ??= ReceiveRate.watch(() => received, onLate)
  }
  if (!isStream) timer = Timer.start(onLate, timeout)
  // Added with the first other listener. An earlier listener would start the flow of the body while nothing reads it.
  const onNewListener = (event: string | symbol) => {
    if (event !== "data" && event !== "readable") return
    body.off("newListener", onNewListener)
    body.on("data", count)
  }
  body.on("newListener", onNewListener)
  body.on("end", release)
  body.on("close", release)
}

const expire = (request: IncomingMessage | Http2ServerRequest, reports: LimitReports): void => {
  reports.acted("receive_time", `Ended ${request.url ?? "a call"}, because its message did not arrive in time`)
  cutOff(request)
}

const cutOff = (request: IncomingMessage | Http2ServerRequest): void => {
  if ("stream" in request) request.stream.close(ErrorCode.ENHANCE_YOUR_CALM)
  else request.destroy()
}

const envelopesOf = (contentType: string | undefined): Envelopes | undefined => {
  if (!isEnveloped(contentType)) return undefined
  return isText(contentType) ? new TextEnvelopes() : new Envelopes()
}

/** Tells whether messages have envelopes: always, except in unary calls of the Connect protocol. */
export const isEnveloped = (contentType = ""): boolean => /^application\/(grpc|connect\+)/.test(contentType)
