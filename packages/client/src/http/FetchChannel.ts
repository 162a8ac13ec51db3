/**
 * HTTP channel for browsers, with `fetch`: unlike HttpChannel.ts, it has no connection pool, TLS options or trailers. A
 * failure after the first response of a stream therefore has only its text.
 */
import { Result } from "effect"
import { ExecutionFailed, type InferenceError, Unavailable } from "@nereid/core/Errors"
import * as GenerateMessage from "@nereid/core/internal/codec/generate/GenerateMessage"
import type { Channel, ChannelReceiver, FailureCause, ServerChannel } from "../channel/Channel.ts"
import type { ClientSettings } from "../channel/ClientOptions.ts"
import { connectionLost } from "../channel/ConnectionLost.ts"
import * as ServerUrl from "@nereid/core/internal/wire/ServerUrl"
import * as HttpRequests from "./HttpRequests.ts"
import * as HttpStatus from "./HttpStatus.ts"

export const make = (settings: ClientSettings): ServerChannel => {
  const { endpoint } = settings
  const origin = ServerUrl.origin(endpoint)
  const controllers = new Set<AbortController>()

  /** Runs an exchange until its end. `fail` receives its failure, unless it was cancelled. */
  const begin = (
    run: (signal: AbortSignal) => Promise<void>,
    fail: (error: InferenceError, cause?: FailureCause) => void,
  ): AbortController => {
    const controller = new AbortController()
    controllers.add(controller)
    const ended = () => void controllers.delete(controller)
    run(controller.signal).then(ended, (error: unknown) => {
      ended()
      if (error instanceof TooLarge) controller.abort()
      else if (controller.signal.aborted && controller.signal.reason === cancelled) return
      if (error instanceof TooLarge) return fail(new ExecutionFailed({ message: error.message }))
      // A browser does not say whether the request was sent.
      fail(new Unavailable({ message: connectionLost(endpoint, false, error) }), "lost")
    })
    return controller
  }

  const send = ({ path, headers, body }: HttpRequests.HttpRequest, signal: AbortSignal) =>
    // The body is never shared memory.
    fetch(origin + path, { method: "POST", headers, body: body as Uint8Array<ArrayBuffer>, signal, redirect: "error" })

  const infer: Channel["infer"] = (wire, timeoutMs, reply) => {
    const request = HttpRequests.infer(settings, wire, timeoutMs)
    const controller = begin(
      async (signal) => {
        const response = await send(request, signal)
        const body = await whole(response, settings.maxResponseSize)
        if (!signal.aborted) reply(HttpRequests.decodeReply(response.status, fields(response), body))
      },
      (error, cause) => reply(Result.fail(error), cause),
    )
    return () => controller.abort(cancelled)
  }

  return {
    infer,
    stream: (wire, timeoutMs, receiver, model) => {
      const request = HttpRequests.generateStream(settings, wire, timeoutMs, model)
      if (Result.isFailure(request))
        return HttpRequests.singleResponse(infer, wire, timeoutMs, receiver, request.failure)
      const gate = new Gate()
      const controller = begin(
        async (signal) => {
          const response = await send(request.success, signal)
          if (response.status !== 200) {
            const body = await whole(response, settings.maxResponseSize)
            return receiver.end(Result.fail(HttpStatus.failure(response.status, fields(response), body)))
          }
          const outcome = await events(response, settings.maxResponseSize, gate, model, receiver, signal)
          if (!signal.aborted) receiver.end(outcome)
          // Aborts a server that continues after the final event.
          controller.abort(cancelled)
        },
        (error, cause) => receiver.end(Result.fail(error), cause),
      )
      return { cancel: () => controller.abort(cancelled), flow: (isPaused) => gate.flow(isPaused) }
    },
    ready: (timeoutMs, reply) => {
      const { path, headers } = HttpRequests.ready(settings)
      const timer = setTimeout(() => controller.abort(new Error("no response")), timeoutMs)
      const controller = begin(
        async (signal) => {
          const response = await fetch(origin + path, { headers, signal, redirect: "error" })
          await response.body?.cancel()
          clearTimeout(timer)
          reply(HttpStatus.readiness(response.status))
        },
        () => {
          clearTimeout(timer)
          reply("unreachable")
        },
      )
      return () => {
        clearTimeout(timer)
        controller.abort(cancelled)
      }
    },
    close: async () => {
      for (const controller of controllers) controller.abort(new Error("the client is closed"))
    },
  }
}

/** The reason with which a cancelled exchange is aborted. */
const cancelled = new Error("cancelled")

class TooLarge extends Error {}

/** Lets a stream wait for its reader. */
class Gate {
  #opened: Promise<void> | undefined
  #open = () => {}

  flow(isPaused: boolean): void {
    if (!isPaused) {
      this.#open()
      this.#opened = undefined
    } else if (this.#opened === undefined) {
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#opened = promise
      this.#open = resolve
    }
  }

  get opened(): Promise<void> | undefined {
    return this.#opened
  }
}

/** Returns the headers, with names in lower case. */
const fields = ({ headers }: Response): Record<string, string> => Object.fromEntries(headers)

const whole = async (response: Response, limit: number): Promise<Uint8Array> => {
  const parts = new LimitedBytes(limit, "the response")
  for await (const chunk of chunks(response)) parts.append(chunk)
  return parts.take()
}

/** The responses of a stream, up to its end. */
const events = async (
  response: Response,
  limit: number,
  gate: Gate,
  model: GenerateMessage.GenerateModel,
  receiver: ChannelReceiver,
  signal: AbortSignal,
): Promise<Result.Result<void, InferenceError>> => {
  const line = new LimitedBytes(limit, "a response")
  for await (const chunk of chunks(response)) {
    let rest = chunk
    for (let end = rest.indexOf(lineFeed); end >= 0; end = rest.indexOf(lineFeed)) {
      line.append(rest.subarray(0, end))
      rest = rest.subarray(end + 1)
      const text = line.take()
      if (!eventStart.every((byte, index) => text[index] === byte)) continue
      const event = GenerateMessage.decode(text.subarray(eventStart.length), model)
      if (Result.isFailure(event)) return Result.fail(event.failure)
      if (event.success._tag === "Failure") return Result.fail(new ExecutionFailed({ message: event.success.message }))
      if (signal.aborted) return Result.void
      receiver.response(event.success.response)
    }
    line.append(rest)
    await gate.opened
  }
  return Result.void
}

const lineFeed = 0x0a
const eventStart = new TextEncoder().encode("data: ")

/** Browsers have streams that cannot be iterated. */
async function* chunks({ body }: Response): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const reader = body?.getReader()
  if (reader === undefined) return
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    yield value
  }
}

/** Collects received bytes, up to a limit. */
class LimitedBytes {
  readonly #limit: number
  readonly #subject: string
  #parts: Array<Uint8Array> = []
  #length = 0

  constructor(limit: number, subject: string) {
    this.#limit = limit
    this.#subject = subject
  }

  append(part: Uint8Array): void {
    this.#parts.push(part)
    this.#length += part.length
    if (this.#length > this.#limit) throw new TooLarge(`${this.#subject} exceeds maxResponseSize, ${this.#limit} bytes`)
  }

  take(): Uint8Array {
    const all = new Uint8Array(this.#length)
    let offset = 0
    for (const part of this.#parts) {
      all.set(part, offset)
      offset += part.length
    }
    this.#parts = []
    this.#length = 0
    return all
  }
}
