/**
 * A call on a stream of node:http2. Another implementation of HTTP/2 would stand in here (Call.ts); what a call does is in
 * GrpcUnary.ts and StreamCall.ts.
 */
import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from "node:http2"
import type { CallMetadata, CallOptions, Receiver, Responder } from "./Call.ts"
import type { CallRecords } from "../log/CallRecord.ts"
import type { ForwardedHeaders } from "../ForwardedHeaders.ts"
import * as GrpcStatus from "./GrpcStatus.ts"
import * as HalfOpen from "./HalfOpen.ts"
import * as Preparation from "../Preparation.ts"
import type { Port } from "../trace/RequestTrace.ts"

export interface StreamOptions extends CallOptions {
  /** Undefined where no header becomes a parameter. */
  readonly forward: ForwardedHeaders | undefined
  readonly records: CallRecords
}

/** An RPC that is answered here. */
export interface Rpc {
  /** Of its service and itself. */
  readonly name: string
  /** Where its request comes from, if it has only one. */
  readonly port: Port | undefined
  readonly call: new (options: CallOptions, responder: Responder, metadata: CallMetadata) => Receiver
}

export const serve = (
  { name, port, call: Call }: Rpc,
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  options: StreamOptions,
): void => {
  // A stream that the caller resets emits an error; without a listener that ends the process.
  stream.on("error", nothing)
  const { forward, records } = options
  const record = records.begin(port)
  const timeout = headers["grpc-timeout"]
  const responder = new Http2Responder(stream)
  const call = new Call(options, responder, {
    timeout: Array.isArray(timeout) ? timeout.join() : timeout,
    endsAtError: headers[errorModeHeader] === "true",
    prepare: Preparation.make(forward, record, () => Object.entries(headers)),
  })
  let unwanted = 0
  stream.on("data", (chunk: Uint8Array) => {
    call.onData(chunk)
    // A reset at once would overtake the answer; a caller that goes on for so long does not read it anyway.
    if (responder.hasEnded && (unwanted += chunk.length) > patience) stream.close(constants.NGHTTP2_NO_ERROR)
  })
  stream.on("end", () => call.onEnd())
  stream.on("close", () => call.onClose())
  if (record !== undefined) stream.on("close", () => record.end(name, responder.status))
}

class Http2Responder implements Responder {
  readonly #stream: ServerHttp2Stream
  /** How the call has ended, for the log. */
  status = "CANCELLED"
  hasEnded = false

  constructor(stream: ServerHttp2Stream) {
    this.#stream = stream
  }

  reply(frame: Uint8Array): void {
    if (this.#isGone()) return
    this.#end("OK")
    this.#stream.on("wantTrailers", sendSuccess)
    this.#stream.respond(replyHeaders, replyOptions)
    this.#stream.end(frame)
  }

  send(frames: Uint8Array): boolean {
    if (this.#isGone()) return true
    this.#begin()
    return this.#stream.write(frames)
  }

  onceWritable(resume: () => void): void {
    this.#stream.once("drain", resume)
  }

  end(): void {
    if (this.#isGone()) return
    this.#begin()
    this.#end("OK")
    this.#stream.on("wantTrailers", sendSuccess)
    this.#stream.end()
    HalfOpen.closeSoon(this.#stream)
  }

  fail(failure: GrpcStatus.GrpcStatus): void {
    if (this.#isGone()) return
    this.#end(GrpcStatus.name(failure.code))
    const status = GrpcStatus.headers(failure)
    if (this.#stream.headersSent) {
      this.#stream.on("wantTrailers", () => this.#stream.sendTrailers(status))
      this.#stream.end()
    } else {
      this.#stream.respond({ ...replyHeaders, ...status }, { endStream: true })
    }
    HalfOpen.closeSoon(this.#stream)
  }

  pause(): void {
    this.#stream.pause()
  }

  resume(): void {
    this.#stream.resume()
  }

  #begin(): void {
    if (!this.#stream.headersSent) this.#stream.respond(replyHeaders, replyOptions)
  }

  #end(status: string): void {
    this.hasEnded = true
    this.status = status
  }

  #isGone(): boolean {
    return this.hasEnded || this.#stream.destroyed || this.#stream.closed
  }
}

/** With this header, the first failure of a stream's requests is that of the stream, in its status. */
export const errorModeHeader = "triton_grpc_error"

/** Bytes that are read and dropped after the answer. */
const patience = 16 * 1024 * 1024

const nothing = () => {}

const replyHeaders = { ":status": 200, "content-type": "application/grpc+proto" }

const replyOptions = { waitForTrailers: true }

const sendSuccess = function (this: ServerHttp2Stream): void {
  this.sendTrailers({ "grpc-status": "0" })
}
