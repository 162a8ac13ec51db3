/**
 * `POST /v2/models/{model}/infer`, and `generate_stream`, as a channel, over a pool of HTTP/1.1 connections, with binary tensors both ways. It
 * drives undici's dispatcher itself: a cancel needs no abort signal, and a body is collected once and within its limit.
 */
import type { IncomingHttpHeaders } from "node:http"
import { Result } from "effect"
import { type Dispatcher, Pool } from "undici"
import * as BinaryExtension from "@nereid/core/BinaryExtension"
import { ExecutionFailed, type InferenceError, Unavailable, Unsupported } from "@nereid/core/Errors"
import * as GenerateMessage from "@nereid/core/GenerateMessage"
import type { WireRequest, WireResponse } from "@nereid/core/WireRequest"
import type { Channel, ChannelReceiver, ChannelReply, ChannelStream } from "./Channel.ts"
import type { Settings } from "./ClientOptions.ts"
import { connectionLost } from "./ConnectionLost.ts"
import * as Endpoint from "./Endpoint.ts"
import * as HttpStatus from "./HttpStatus.ts"
import { HttpStream } from "./HttpStream.ts"

/** Each carries one request at a time; further ones wait for a free one. */
const connections = 128

export const make = (settings: Settings): Channel => {
  const { endpoint, headers, tls, connectTimeout } = settings
  const pool = new Pool(Endpoint.origin(endpoint), {
    connections,
    pipelining: 1,
    allowH2: false,
    // How long an answer may take is the caller's deadline, nothing else.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: { ...tls, timeout: connectTimeout },
  })
  const infer: Channel["infer"] = (wire, timeoutMs, reply) => {
    const { body, headerLength } = BinaryExtension.encodeRequest(wire)
    const exchange = new Exchange(settings, reply)
    const own: Record<string, string> = {
      ...headers,
      "content-type": "application/octet-stream",
      [BinaryExtension.headerLengthHeader]: String(headerLength),
    }
    const timeout = timeoutHeader(timeoutMs)
    if (timeout !== undefined) own[BinaryExtension.timeoutHeader] = timeout
    pool.dispatch({ path: endpoint.path + path(wire, "infer"), method: "POST", headers: own, body }, exchange)
    return () => exchange.cancel()
  }
  return {
    infer,
    stream: (wire, timeoutMs, receiver, model) => {
      const problem = GenerateMessage.problem(model)
      const body = problem === undefined ? GenerateMessage.encode(wire) : Result.fail(problem)
      if (Result.isFailure(body)) return single(infer, wire, timeoutMs, receiver, body.failure)
      const stream = new HttpStream(settings, model, receiver)
      const own: Record<string, string> = { ...headers, "content-type": "application/json" }
      const timeout = timeoutHeader(timeoutMs)
      if (timeout !== undefined) own[BinaryExtension.timeoutHeader] = timeout
      const target = endpoint.path + path(wire, "generate_stream")
      pool.dispatch({ path: target, method: "POST", headers: own, body: body.success }, stream)
      return { cancel: () => stream.cancel(), flow: (waits) => stream.flow(waits) }
    },
    close: () => pool.destroy(),
  }
}

/**
 * The one response of a model whose tensors JSON cannot tell, as binary data. There is no such way to those of a model that may have
 * several: it fails, and says why.
 */
const single = (
  infer: Channel["infer"],
  wire: WireRequest,
  timeoutMs: number | undefined,
  receiver: ChannelReceiver,
  why: Unsupported,
): ChannelStream => {
  const cancel = infer(wire, timeoutMs, (outcome) => {
    if (Result.isSuccess(outcome)) {
      receiver.response(outcome.success)
      return receiver.end(Result.void)
    }
    const { failure } = outcome
    // The words of the protocol's servers, whichever status they have.
    if (!failure.message.includes("decoupled")) return receiver.end(Result.fail(failure))
    const message = `${why.message}; streams of it need gRPC`
    receiver.end(Result.fail(new Unsupported({ message })))
  })
  return { cancel, flow: () => {} }
}

const path = ({ modelName, modelVersion }: WireRequest, route: string): string => {
  const version = modelVersion === "" ? "" : `/versions/${encodeURIComponent(modelVersion)}`
  return `/v2/models/${encodeURIComponent(modelName)}${version}/${route}`
}

/** The most that a server has to read: twelve digits, which are thirty years. */
const longestTimeout = 999_999_999_999

/** Rounded up; undefined for no end. */
const timeoutHeader = (milliseconds = Infinity): string | undefined =>
  Number.isFinite(milliseconds) ? String(Math.min(longestTimeout, Math.max(1, Math.ceil(milliseconds)))) : undefined

/** One request and its response. */
class Exchange implements Dispatcher.DispatchHandler {
  readonly #settings: Settings
  #reply: ChannelReply | undefined
  /** There from the moment the request has a connection. */
  #controller: Dispatcher.DispatchController | undefined
  #status = 0
  #headers: IncomingHttpHeaders = {}
  #chunks: Array<Buffer> = []
  #received = 0

  constructor(settings: Settings, reply: ChannelReply) {
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
    // Whatever begins with 1 announces the response and is not it.
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
    const message = `the reply has more than maxResponseSize, ${maxResponseSize} bytes`
    this.#settle(Result.fail(new ExecutionFailed({ message })))
    controller.abort(new Error(message))
  }

  onResponseEnd(): void {
    if (this.#reply === undefined) return
    const [first = Buffer.alloc(0), ...rest] = this.#chunks
    const { buffer, byteOffset, length } = rest.length === 0 ? first : Buffer.concat(this.#chunks, this.#received)
    // Whoever gets a tensor may count on slice() being a copy, which a Buffer's is not.
    const body = new Uint8Array(buffer, byteOffset, length)
    this.#settle(
      this.#status === 200
        ? decode(this.#headers, body)
        : Result.fail(HttpStatus.failure(this.#status, this.#headers, body)),
    )
  }

  onResponseError(_: unknown, error: Error): void {
    const connected = this.#controller !== undefined
    this.#settle(Result.fail(new Unavailable({ message: connectionLost(this.#settings.endpoint, connected, error) })))
  }

  #settle(outcome: Result.Result<WireResponse, InferenceError>): void {
    const reply = this.#reply
    this.#reply = undefined
    reply?.(outcome)
  }
}

const decode = (headers: IncomingHttpHeaders, body: Uint8Array): Result.Result<WireResponse, InferenceError> => {
  const unreadable = ({ message }: InferenceError) =>
    new ExecutionFailed({ message: `the server's reply cannot be read: ${message}` })
  return BinaryExtension.parseHeaderLength(HttpStatus.single(headers[BinaryExtension.headerLengthHeader])).pipe(
    Result.flatMap((length): Result.Result<WireResponse, InferenceError> =>
      BinaryExtension.decodeResponse(body, length),
    ),
    Result.mapError(unreadable),
  )
}
