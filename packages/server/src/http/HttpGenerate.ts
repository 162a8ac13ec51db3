/**
 * POST …/generate and …/generate_stream: the request is one flat JSON object. The response is the model's only
 * response, or all responses as server-sent events. Both work for any model, decoupled or not. HttpInfer.ts handles
 * binary tensors.
 *
 *   headers ─► body ─► decode ─► gateway.stream ─┬─ generate: the first response; a second one refuses ─► {…}
 *     │          │        │          │           └─ generate_stream: each ─► data: {…}, as fast as the caller reads
 *     └──────────┴────────┴──────────┴─ refused, before the model had it: {"error": …} with its status
 *                                        a connection that closes cancels the request
 */
import { Effect, Exit, Result } from "effect"
import { headersOf } from "@nereid/core/internal/wire/ErrorHeaders"
import { statusOf } from "@nereid/core/internal/wire/ErrorStatus"
import { type InferenceError, InvalidRequest, Unsupported } from "@nereid/core/Errors"
import { decodeGenerate } from "@nereid/core/internal/codec/generate/GenerateDecoder"
import { GeneratedTexts } from "@nereid/core/internal/codec/generate/GeneratedTexts"
import { encodeGenerated } from "@nereid/core/internal/codec/generate/GenerateEncoder"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import type { ModelInterface } from "@nereid/core/internal/wire/ModelInterface"
import type { WireRequest, WireResponse } from "@nereid/core/internal/wire/WireRequest"
import type { InferenceReceiver } from "../dispatch/InferenceDispatch.ts"
import type { Gateway } from "../gateway/Gateway.ts"
import { isClosed, type IncomingRequest } from "../port/HttpExchange.ts"
import * as HalfClosed from "../port/HalfClosed.ts"
import { type Document, EventStream } from "./EventStream.ts"
import * as HeldResponse from "./HeldResponse.ts"
import { collect } from "./HttpBody.ts"
import { addTiming, deadline, preparation, type HttpCall, type InferOptions, timing } from "./HttpCall.ts"
import * as HttpCompression from "./HttpCompression.ts"
import { failureHeaders, sendChunks, sendError } from "../port/HttpReply.ts"

/** The JSON form of a request and its responses. */
export interface DocumentCodec {
  readonly decode: (body: Uint8Array, model: ModelInterface) => Result.Result<WireRequest, InferenceError>
  readonly encode: (response: WireResponse) => Result.Result<string | Uint8Array, InferenceError>
  /** Makes an encoder for the responses of one stream, which share most of their JSON. Default: `encode`. */
  readonly makeEncoder?: () => (response: WireResponse) => Result.Result<Document, InferenceError>
}

/** Codec of the generate extension. */
const flat: DocumentCodec = {
  decode: decodeGenerate,
  encode: encodeGenerated,
  makeEncoder: () => {
    const texts = new GeneratedTexts()
    return (response) => texts.encode(response)
  },
}

/** Responds with the single response of the model; any other number of responses is an error. */
export const generate = (gateway: Gateway, call: HttpCall, options: InferOptions, codec = flat): void =>
  handle(gateway, call, options, codec, (): ResponseWriter => {
    const { response } = call
    let only: WireResponse | undefined
    const refuse = () => sendError(response, new Unsupported({ message: exactlyOne }))
    return {
      write: (next) => {
        if (only !== undefined) refuse()
        only = next
        return !response.writableEnded
      },
      fail: (error) => sendError(response, error),
      finish: () => {
        if (only === undefined) return refuse()
        const document = codec.encode(only)
        if (Result.isFailure(document)) return sendError(response, document.failure)
        const bytes = typeof document.success === "string" ? Buffer.from(document.success) : document.success
        if (HeldResponse.hold(call, bytes.length)) {
          sendChunks(response, [bytes], { "content-type": "application/json" })
        }
      },
    }
  })

/** Responds with every response of the model as an event. */
export const generateStream = (gateway: Gateway, call: HttpCall, options: InferOptions, codec = flat): void =>
  handle(gateway, call, options, codec, (): ResponseWriter => {
    const { request, response } = call
    const events = new EventStream(response)
    const encode = codec.makeEncoder?.() ?? codec.encode
    HalfClosed.probeWith(response, () => response.write(comment))
    const begin = (error: InferenceError) =>
      response.writeHead(statusOf(error).http, { ...eventStream, ...failureHeaders(error) })
    const writeFailure = ({ message }: InferenceError) => events.write(JSON.stringify({ error: message }))
    const fail = (error: InferenceError, isSubmitted: boolean) => {
      if (!response.headersSent) {
        if (!isSubmitted) return sendError(response, error)
        begin(error)
      } else if (takesTrailers(request)) {
        // Headers were sent already, so the error goes into trailers.
        response.addTrailers(headersOf(error))
      }
      writeFailure(error)
      events.end()
    }
    return {
      write: (next) => {
        const document = encode(next)
        if (Result.isFailure(document)) {
          fail(document.failure, true)
          return false
        }
        if (!response.headersSent) response.writeHead(200, eventStream)
        return events.write(document.success)
      },
      writeError: (error) => {
        if (!response.headersSent) begin(error)
        return writeFailure(error)
      },
      fail,
      finish: () => {
        if (!response.headersSent) response.writeHead(200, eventStream)
        events.end()
      },
    }
  })

/** Writes the responses of the model to one request, until the HTTP response has ended. */
interface ResponseWriter {
  /** Writes one response. Returns whether the client can take another one now. */
  readonly write: (response: WireResponse) => boolean
  /** The same of an error behind which the request goes on; absent if the first error ends the response. */
  readonly writeError?: (error: InferenceError) => boolean
  /** The request has failed; `isSubmitted`: after it was submitted to its model. */
  readonly fail: (error: InferenceError, isSubmitted: boolean) => void
  /** There are no more responses. */
  readonly finish: () => void
}

const handle = (
  gateway: Gateway,
  call: HttpCall,
  options: InferOptions,
  codec: DocumentCodec,
  makeWriter: () => ResponseWriter,
): void => {
  const { request, response, guard, model, memory } = call
  if (HttpCompression.contentEncoding(request.headers["content-encoding"]) !== "identity") {
    return sendError(response, new InvalidRequest({ message: identityOnly }))
  }
  const until = deadline(call, gateway.lateReading.waited())
  if (Result.isFailure(until)) return sendError(response, until.failure)

  const submit = (body: Uint8Array, running: RunningModel) => {
    const wire = Result.flatMap(codec.decode(body, running.description), preparation(call, options))
    if (Result.isFailure(wire)) return sendError(response, wire.failure)
    const writer = makeWriter()
    const timed = timing(call)
    let isSubmitted = false
    const hasRoom = Effect.callback<void>((resume) => {
      // "close" cancels the request, and interrupts this.
      const stopWaiting = () => void response.off("drain", proceed).off("close", proceed)
      const proceed = () => {
        stopWaiting()
        resume(Effect.void)
      }
      response.on("drain", proceed).on("close", proceed)
      return Effect.sync(stopWaiting)
    })
    /** Writes at once, and completes once the client can take more. */
    const written = <A>(write: (message: A) => boolean, message: A): Effect.Effect<void> => {
      let takesMore = false
      try {
        takesMore = response.writableEnded ? false : write(message)
      } catch (defect) {
        guard(() => {
          throw defect
        })
      }
      return takesMore || isClosed(response) ? Exit.void : hasRoom
    }
    const { write, writeError } = writer
    const receiver: InferenceReceiver = {
      emit: (next) => written(write, next),
      emitError: writeError && ((error) => written(writeError, error)),
      end: (outcome) =>
        guard(() => {
          if (isClosed(response) || response.writableEnded) return
          addTiming(call, timed)
          if (Result.isFailure(outcome)) return writer.fail(outcome.failure, isSubmitted)
          if (!running.calls.decoupled) writer.write(outcome.success)
          if (!response.writableEnded) writer.finish()
        }),
    }
    const submitted = timed === undefined ? wire.success : timed.attach(wire.success)
    const cancel = gateway.stream(submitted, until.success?.at, receiver, memory)
    isSubmitted = true
    response.on("close", cancel)
  }
  collect(call, options.maxInputSize, (body) =>
    guard(() => {
      // An unknown model is reported before an invalid request.
      const running = gateway.model(model.name, model.version)
      if (Result.isFailure(running)) sendError(response, running.failure)
      else submit(body, running.success)
    }),
  )
}

/** Whether the client accepts trailers; others may discard them (RFC 9110, 6.5.1). The keyword has no weight. */
const takesTrailers = ({ headers }: IncomingRequest): boolean =>
  String(headers["te"] ?? "")
    .replaceAll(/"(?:[^"\\]|\\.)*"/g, "")
    .split(",")
    .some((coding) => coding.trim().toLowerCase() === "trailers")

/** An event without content, which clients ignore. */
const comment = Buffer.from(":\n\n")

/** Headers of an event stream, which tell proxies not to buffer events. */
const eventStream = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache",
  "x-accel-buffering": "no",
}

const identityOnly = "Unsupported content-encoding, only 'identity' is supported."

const exactlyOne =
  "generate expects model to produce exactly 1 response, use generate stream for model that generates various number of responses"
