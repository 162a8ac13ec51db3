/**
 * Channel over `POST /v2/models/{model}/infer` and `generate_stream`: a pool of HTTP/1.1 connections, with binary
 * tensors in both directions. It uses undici's dispatcher directly, so a cancel needs no abort signal, and a body is
 * collected once, within its limit.
 */
import type { IncomingHttpHeaders } from "node:http"
import { Result } from "effect"
import { constVoid } from "effect/Function"
import { type Dispatcher, Pool } from "undici"
import { ExecutionFailed, type InferenceError, Unavailable } from "@nereid/core/Errors"
import type { WireResponse } from "@nereid/core/internal/wire/WireRequest"
import type { Channel, ChannelReply, FailureCause, Readiness, ServerChannel } from "../channel/Channel.ts"
import type { ClientSettings } from "../channel/ClientOptions.ts"
import { connectionLost } from "../channel/ConnectionLost.ts"
import { fixedLookup } from "../channel/FixedLookup.ts"
import * as ServerUrl from "@nereid/core/internal/wire/ServerUrl"
import * as HttpRequests from "./HttpRequests.ts"
import * as HttpStatus from "./HttpStatus.ts"
import { HttpStream } from "./HttpStream.ts"

/** Each carries one request at a time; further ones wait for a free one. */
const connections = 128

export const make = (settings: ClientSettings): ServerChannel => {
  const { endpoint, ip, tls, connectTimeout } = settings
  const pool = new Pool(ServerUrl.origin(endpoint), {
    connections,
    pipelining: 1,
    allowH2: false,
    // The caller's deadline is the only timeout of responses.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: { ...tls, ...fixedLookup(ip), timeout: connectTimeout },
  })
  const infer: Channel["infer"] = (wire, timeoutMs, reply) => {
    const request = HttpRequests.infer(settings, wire, timeoutMs)
    const exchange = new Exchange(settings, reply)
    pool.dispatch({ ...request, method: "POST" }, exchange)
    return () => exchange.cancel()
  }
  return {
    infer,
    stream: (wire, timeoutMs, receiver, model) => {
      const request = HttpRequests.generateStream(settings, wire, timeoutMs, model)
      if (Result.isFailure(request))
        return HttpRequests.singleResponse(infer, wire, timeoutMs, receiver, request.failure)
      const stream = new HttpStream(settings, model, receiver)
      pool.dispatch({ ...request.success, method: "POST" }, stream)
      return { cancel: () => stream.cancel(), flow: (isPaused) => stream.flow(isPaused) }
    },
    ready: (timeoutMs, reply) => {
      const signal = AbortSignal.timeout(Math.ceil(timeoutMs))
      let isOpen = true
      const settle = (readiness: Readiness) => {
        if (isOpen) reply(readiness)
        isOpen = false
      }
      pool.request({ ...HttpRequests.ready(settings), method: "GET", signal }).then(
        ({ statusCode, body }) => {
          body.dump().catch(constVoid)
          settle(HttpStatus.readiness(statusCode))
        },
        () => settle("unreachable"),
      )
      return () => void (isOpen = false)
    },
    close: () => pool.destroy(),
  }
}

/** One request and its response. */
class Exchange implements Dispatcher.DispatchHandler {
  readonly #settings: ClientSettings
  #reply: ChannelReply | undefined
  /** Set once the request has a connection. */
  #controller: Dispatcher.DispatchController | undefined
  #status = 0
  #headers: IncomingHttpHeaders = {}
  #chunks: Array<Buffer> = []
  #received = 0

  constructor(settings: ClientSettings, reply: ChannelReply) {
    this.#settings = settings
    this.#reply = reply
  }

  /** Ends it without a reply; closes its connection, by which the server knows. */
  cancel(): void {
    if (this.#reply === undefined) return
    this.#reply = undefined
    this.#controller?.abort(new Error("cancelled"))
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#reply === undefined) controller.abort(new Error("cancelled"))
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    // Ignores informational responses (1xx), which precede the response.
    if (status < 200) return
    this.#status = status
    this.#headers = headers
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#received += chunk.length
    const { maxResponseSize } = this.#settings
    if (this.#received <= maxResponseSize) {
      this.#chunks.push(chunk)
      return
    }
    const message = `the response exceeds maxResponseSize, ${maxResponseSize} bytes`
    this.#settle(Result.fail(new ExecutionFailed({ message })))
    controller.abort(new Error(message))
  }

  onResponseEnd(): void {
    if (this.#reply === undefined) return
    const [first = Buffer.alloc(0), ...rest] = this.#chunks
    const { buffer, byteOffset, length } = rest.length === 0 ? first : Buffer.concat(this.#chunks, this.#received)
    // Views the bytes as a Uint8Array, whose slice() copies; callers may rely on it. A Buffer's slice() does not copy.
    const body = new Uint8Array(buffer, byteOffset, length)
    this.#settle(HttpRequests.decodeReply(this.#status, this.#headers, body))
  }

  onResponseError(_: unknown, error: Error): void {
    const connected = this.#controller !== undefined
    const message = connectionLost(this.#settings.endpoint, connected, error)
    this.#settle(Result.fail(new Unavailable({ message })), connected ? "lost" : "unsent")
  }

  #settle(outcome: Result.Result<WireResponse, InferenceError>, cause?: FailureCause): void {
    const reply = this.#reply
    this.#reply = undefined
    reply?.(outcome, cause)
  }
}
