/**
 * Limits the memory of incomplete messages that Connect collects, by counting their bytes before Connect reads them. A
 * message that takes too long, or exceeds the budget, is cut off without an error message. A stream may be idle between
 * messages.
 */
import type { IncomingMessage } from "node:http"
import { constants, type Http2ServerRequest } from "node:http2"
import { Envelopes } from "./Envelopes.ts"
import type { ReceiveBudget } from "../port/ReceiveBudget.ts"
import * as Timer from "../port/Timer.ts"

export const limitReceiving = (
  request: IncomingMessage | Http2ServerRequest,
  timeout: number,
  budget: ReceiveBudget,
  isStream: boolean,
): void => {
  const body = "stream" in request ? request.stream : request
  const cutOff = () => {
    if ("stream" in request) request.stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM)
    else request.destroy()
  }
  const envelopes = isEnveloped(request.headers["content-type"]) ? new Envelopes() : undefined
  let reserved = 0
  let timer = isStream ? undefined : Timer.start(cutOff, timeout)
  const reserveBytes = (bytes: number) => {
    if (bytes <= reserved) budget.give(reserved - bytes)
    else if (budget.take(bytes - reserved) !== undefined) return cutOff()
    reserved = bytes
  }
  const release = () => {
    clearTimeout(timer)
    reserveBytes(0)
  }
  const count = (chunk: Uint8Array) => {
    if (envelopes === undefined) return reserveBytes(reserved + chunk.length)
    const wasWhole = envelopes.incomplete === 0
    envelopes.add(chunk)
    reserveBytes(envelopes.incomplete)
    if (envelopes.incomplete === 0) clearTimeout(timer)
    else if (wasWhole && (isStream || envelopes.count > 0)) timer = Timer.start(cutOff, timeout)
  }
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

/** Tells whether messages have envelopes: always, except in unary calls of the Connect protocol. */
export const isEnveloped = (contentType = ""): boolean => /^application\/(grpc|connect\+)/.test(contentType)
