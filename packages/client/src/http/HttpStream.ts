/**
 * One request to `generate_stream`, and its events as responses. A slow reader applies backpressure to the server
 * through the connection. HttpChannel.ts handles `infer`.
 */
import type { IncomingHttpHeaders } from "node:http"
import { Result } from "effect"
import type { Dispatcher } from "undici"
import { ExecutionFailed, type InferenceError, Unavailable } from "@nereid/core/Errors"
import * as GenerateMessage from "@nereid/core/internal/codec/generate/GenerateMessage"
import type { ChannelReceiver, FailureCause } from "../channel/Channel.ts"
import type { ClientSettings } from "../channel/ClientOptions.ts"
import { connectionLost } from "../channel/ConnectionLost.ts"
import * as HttpStatus from "./HttpStatus.ts"

export class HttpStream implements Dispatcher.DispatchHandler {
  readonly #settings: ClientSettings
  readonly #model: GenerateMessage.GenerateModel
  #receiver: ChannelReceiver | undefined
  /** Set once the request has a connection. */
  #controller: Dispatcher.DispatchController | undefined
  #status = 0
  #headers: IncomingHttpHeaders = {}
  /** Parts of an incomplete event, or of a response that is not an event stream. */
  #chunks: Array<Buffer> = []
  #bufferedBytes = 0
  /** The failure of an event; the trailers add its kind. */
  #failure: InferenceError | undefined

  constructor(settings: ClientSettings, model: GenerateMessage.GenerateModel, receiver: ChannelReceiver) {
    this.#settings = settings
    this.#model = model
    this.#receiver = receiver
  }

  /** Ends the stream without calling its receiver; closes the connection, which cancels the request on the server. */
  cancel(): void {
    if (this.#receiver === undefined) return
    this.#receiver = undefined
    this.#controller?.abort(new Error("cancelled"))
  }

  flow(isPaused: boolean): void {
    if (isPaused) this.#controller?.pause()
    else this.#controller?.resume()
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#receiver === undefined) controller.abort(new Error("cancelled"))
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    // Ignores informational responses (1xx), which precede the response.
    if (status < 200) return
    this.#status = status
    this.#headers = headers
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    let rest = chunk
    while (this.#status === 200 && this.#receiver !== undefined) {
      const end = rest.indexOf(lineFeed)
      if (end < 0) break
      this.#buffer(rest.subarray(0, end))
      rest = rest.subarray(end + 1)
      this.#event(this.#takeBuffered())
    }
    this.#buffer(rest)
  }

  onResponseEnd(_: Dispatcher.DispatchController, trailers: IncomingHttpHeaders): void {
    if (this.#failure !== undefined) this.#end(Result.fail(HttpStatus.withErrorFields(this.#failure, trailers, 200)))
    else if (this.#status === 200) this.#end(Result.void)
    else this.#end(Result.fail(HttpStatus.failure(this.#status, this.#headers, this.#takeBuffered())))
  }

  onResponseError(_: unknown, error: Error): void {
    if (this.#failure !== undefined) return this.#end(Result.fail(this.#failure))
    const connected = this.#controller !== undefined
    const message = connectionLost(this.#settings.endpoint, connected, error)
    this.#end(Result.fail(new Unavailable({ message })), connected ? "lost" : "unsent")
  }

  #buffer(part: Buffer): void {
    this.#chunks.push(part)
    this.#bufferedBytes += part.length
    const { maxResponseSize } = this.#settings
    if (this.#bufferedBytes <= maxResponseSize) return
    this.#fail(new ExecutionFailed({ message: `a response exceeds maxResponseSize, ${maxResponseSize} bytes` }))
  }

  #takeBuffered(): Buffer {
    const [first = Buffer.alloc(0), ...rest] = this.#chunks
    const all = rest.length === 0 ? first : Buffer.concat(this.#chunks, this.#bufferedBytes)
    this.#chunks = []
    this.#bufferedBytes = 0
    return all
  }

  /** One line, which is an event or the space behind one. */
  #event(line: Buffer): void {
    if (!line.subarray(0, eventStart.length).equals(eventStart)) return
    // A failure is the last event.
    if (this.#failure !== undefined) return this.#fail(this.#failure)
    const event = GenerateMessage.decode(line.subarray(eventStart.length), this.#model)
    if (Result.isFailure(event)) this.#fail(event.failure)
    else if (event.success._tag === "Response") this.#receiver?.response(event.success.response)
    else this.#failure = new ExecutionFailed({ message: event.success.message })
  }

  #fail(error: InferenceError): void {
    const controller = this.#receiver === undefined ? undefined : this.#controller
    this.#end(Result.fail(error))
    controller?.abort(new Error(error.message))
  }

  #end(outcome: Result.Result<void, InferenceError>, cause?: FailureCause): void {
    const receiver = this.#receiver
    this.#receiver = undefined
    receiver?.end(outcome, cause)
  }
}

const lineFeed = "\n".charCodeAt(0)
const eventStart = Buffer.from("data: ")
