/**
 * POST …/generate and …/generate_stream: one flat JSON object in, and out either the only response of the model, or all of
 * them as server-sent events. For any model, decoupled or not. Tensors as such are HttpInfer.ts's.
 *
 *   headers ─► body ─► decode ─► gateway.stream ─┬─ generate: the first response; a second one refuses ─► {…}
 *     │          │        │          │           └─ generate_stream: each ─► data: {…}, as fast as the caller reads
 *     └──────────┴────────┴──────────┴─ refused, before the model had it: {"error": …} with its status
 *                                        a connection that closes takes the request back
 */
import { Effect, Result } from "effect"
import { headersOf } from "@nereid/core/internal/wire/ErrorHeaders"
import { statusOf } from "@nereid/core/internal/wire/ErrorStatus"
import { type InferenceError, InvalidRequest, Unsupported } from "@nereid/core/Errors"
import { decodeGenerate } from "@nereid/core/internal/codec/generate/GenerateDecoder"
import { encodeGenerated } from "@nereid/core/internal/codec/generate/GenerateEncoder"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import type { ModelInterface } from "@nereid/core/internal/wire/ModelInterface"
import type { WireRequest, WireResponse } from "@nereid/core/internal/wire/WireRequest"
import type { Gateway } from "../gateway/Gateway.ts"
import { isGone, type Request } from "../port/HttpExchange.ts"
import { collect } from "./HttpBody.ts"
import { deadline, preparation, type HttpCall, type InferOptions } from "./HttpCall.ts"
import * as HttpCompression from "./HttpCompression.ts"
import { failureHeaders, sendChunks, sendError } from "../port/HttpReply.ts"

/** What a request and its responses look like. */
export interface DocumentCodec {
  readonly decode: (body: Uint8Array, model: ModelInterface) => Result.Result<WireRequest, InferenceError>
  readonly encode: (response: WireResponse) => Result.Result<Uint8Array, InferenceError>
}

/** As the generate extension has them. */
const flat: DocumentCodec = { decode: decodeGenerate, encode: encodeGenerated }

/** Answers with the only response of the model; any other number of them is a failure. */
export const generate = (gateway: Gateway, call: HttpCall, options: InferOptions, codec = flat): void =>
  ask(gateway, call, options, codec, (): Answer => {
    const { response } = call
    let only: WireResponse | undefined
    const refuse = () => sendError(response, new Unsupported({ message: exactlyOne }))
    return {
      take: (next) => {
        if (only !== undefined) refuse()
        only = next
        return !response.writableEnded
      },
      fail: (error) => sendError(response, error),
      finish: () => {
        if (only === undefined) return refuse()
        const document = codec.encode(only)
        if (Result.isFailure(document)) sendError(response, document.failure)
        else sendChunks(response, [document.success], { "content-type": "application/json" })
      },
    }
  })

/** Answers with every response of the model, as it comes. */
export const generateStream = (gateway: Gateway, call: HttpCall, options: InferOptions, codec = flat): void =>
  ask(gateway, call, options, codec, (): Answer => {
    const { request, response } = call
    const fail = (error: InferenceError, begun: boolean) => {
      if (!response.headersSent) {
        if (!begun) return sendError(response, error)
        response.writeHead(statusOf(error).http, { ...eventStream, ...failureHeaders(error) })
      } else if (takesTrailers(request)) {
        // What a header would say, for which it is too late.
        response.addTrailers(headersOf(error))
      }
      response.end(event(Buffer.from(JSON.stringify({ error: error.message }))))
    }
    return {
      take: (next) => {
        const document = codec.encode(next)
        if (Result.isFailure(document)) {
          fail(document.failure, true)
          return false
        }
        if (!response.headersSent) response.writeHead(200, eventStream)
        return response.write(event(document.success))
      },
      fail,
      finish: () => {
        if (!response.headersSent) response.writeHead(200, eventStream)
        response.end()
      },
    }
  })

/** Takes what the model says to one request, until the response has ended. */
interface Answer {
  /** One response; whether the caller takes another one now. */
  readonly take: (response: WireResponse) => boolean
  /** The request has failed; `begun` says that its model had it by then. */
  readonly fail: (error: InferenceError, begun: boolean) => void
  /** There are no more responses. */
  readonly finish: () => void
}

const ask = (
  gateway: Gateway,
  call: HttpCall,
  options: InferOptions,
  codec: DocumentCodec,
  makeAnswer: () => Answer,
): void => {
  const { request, response, guard, model } = call
  if (HttpCompression.contentEncoding(request.headers["content-encoding"]) !== "identity") {
    return sendError(response, new InvalidRequest({ message: identityOnly }))
  }
  const until = deadline(call)
  if (Result.isFailure(until)) return sendError(response, until.failure)

  const whole = (body: Uint8Array, running: RunningModel) => {
    const wire = Result.flatMap(codec.decode(body, running.description), preparation(call, options))
    if (Result.isFailure(wire)) return sendError(response, wire.failure)
    const answer = makeAnswer()
    let begun = false
    const cancel = gateway.stream(wire.success, until.success, {
      emit: (next) =>
        Effect.callback((resume) => {
          let taken = false
          guard(() => {
            taken = response.writableEnded ? false : answer.take(next)
          })
          if (taken || isGone(response)) return resume(Effect.void)
          // Its end takes the request back, and interrupts this.
          const stopWaiting = () => void response.off("drain", go).off("close", go)
          const go = () => {
            stopWaiting()
            resume(Effect.void)
          }
          response.on("drain", go).on("close", go)
          return Effect.sync(stopWaiting)
        }),
      end: (outcome) =>
        guard(() => {
          if (isGone(response) || response.writableEnded) return
          if (Result.isFailure(outcome)) return answer.fail(outcome.failure, begun)
          if (!running.calls.decoupled) answer.take(outcome.success)
          if (!response.writableEnded) answer.finish()
        }),
    })
    begun = true
    response.on("close", cancel)
  }
  collect(request, response, options.maxInputSize, (body) =>
    guard(() => {
      // A model that is not there is told before what is wrong with its request.
      const running = gateway.model(model.name, model.version)
      if (Result.isFailure(running)) sendError(response, running.failure)
      else whole(body, running.success)
    }),
  )
}

/** Not sent to others: a client need not know what stands behind a body (RFC 9110, 6.5.1). */
const takesTrailers = ({ headers }: Request): boolean =>
  /(^|,)\s*trailers\s*($|[,;])/i.test(String(headers["te"] ?? ""))

const event = (document: Uint8Array): Uint8Array => Buffer.concat([eventStart, document, eventEnd])

const eventStart = Buffer.from("data: ")
const eventEnd = Buffer.from("\n\n")

/** A proxy that would collect events before it passes them on is told not to. */
const eventStream = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache",
  "x-accel-buffering": "no",
}

const identityOnly = "Unsupported content-encoding, only 'identity' is supported."

const exactlyOne =
  "generate expects model to produce exactly 1 response, use generate stream for model that generates various number of responses"
