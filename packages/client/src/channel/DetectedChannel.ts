/**
 * Channel to a server whose protocol the URL does not name. The first request finds it out (ProtocolProbe.ts), and
 * further requests wait for the result. If the probe fails, the requests that wait fail with its error, and the next
 * request probes again.
 */
import { Effect, type Fiber, Result } from "effect"
import { type InferenceError, Unavailable } from "@nereid/core/Errors"
import type { Cancel } from "@nereid/core/internal/request/Request"
import * as ServerUrl from "@nereid/core/internal/wire/ServerUrl"
import type { ServerChannel, ChannelStream } from "./Channel.ts"
import type { ClientSettings } from "./ClientOptions.ts"
import { detect } from "./ProtocolProbe.ts"

/** A request that waits for the protocol. */
interface WaitingRequest {
  readonly start: (channel: ServerChannel) => void
  readonly fail: (error: InferenceError) => void
}

/** Makes a function that opens such channels. `open` opens the channel of a protocol. */
export const opener = (
  open: (settings: ClientSettings) => ServerChannel,
): Effect.Effect<(settings: ClientSettings) => ServerChannel> =>
  Effect.map(Effect.context<never>(), (context) => (settings) => {
    const detected = new Detected(settings, open, Effect.runForkWith(context))
    return {
      infer: (wire, timeoutMs, reply) => {
        let cancel: Cancel | undefined
        const withdraw = detected.submit({
          start: (channel) => (cancel = channel.infer(wire, timeoutMs, reply)),
          fail: (error) => reply(Result.fail(error), "unsent"),
        })
        return () => (cancel ?? withdraw)()
      },
      stream: (wire, timeoutMs, receiver, model) => {
        let stream: ChannelStream | undefined
        let isPaused = false
        const withdraw = detected.submit({
          start: (channel) => {
            stream = channel.stream(wire, timeoutMs, receiver, model)
            if (isPaused) stream.flow(true)
          },
          fail: (error) => receiver.end(Result.fail(error), "unsent"),
        })
        return {
          cancel: () => (stream?.cancel ?? withdraw)(),
          flow: (paused) => {
            isPaused = paused
            stream?.flow(paused)
          },
        }
      },
      ready: (timeoutMs, reply) => {
        let cancel: Cancel | undefined
        const withdraw = detected.submit({
          start: (channel) => (cancel = channel.ready(timeoutMs, reply)),
          fail: () => reply("unreachable"),
        })
        return () => (cancel ?? withdraw)()
      },
      close: () => detected.close(),
    }
  })

class Detected {
  readonly #settings: ClientSettings
  readonly #open: (settings: ClientSettings) => ServerChannel
  readonly #fork: <E>(effect: Effect.Effect<void, E>) => Fiber.Fiber<void, E>
  readonly #waiting = new Set<WaitingRequest>()
  #channel: ServerChannel | undefined
  #isProbing = false
  #isClosed = false

  constructor(
    settings: ClientSettings,
    open: (settings: ClientSettings) => ServerChannel,
    fork: <E>(effect: Effect.Effect<void, E>) => Fiber.Fiber<void, E>,
  ) {
    this.#settings = settings
    this.#open = open
    this.#fork = fork
  }

  /** Starts a request once the protocol is known. Returns a function that withdraws a request that waits. */
  submit(request: WaitingRequest): Cancel {
    if (this.#channel !== undefined) {
      request.start(this.#channel)
      return () => {}
    }
    if (this.#isClosed) {
      request.fail(this.#closed())
      return () => {}
    }
    this.#waiting.add(request)
    if (!this.#isProbing) this.#probe()
    return () => void this.#waiting.delete(request)
  }

  close(): Promise<void> {
    this.#isClosed = true
    this.#fail(this.#closed())
    return this.#channel?.close() ?? Promise.resolve()
  }

  #probe(): void {
    this.#isProbing = true
    this.#fork(
      Effect.match(detect(this.#settings), {
        onSuccess: (settings) => {
          this.#isProbing = false
          if (this.#isClosed) return
          const channel = this.#open(settings)
          this.#channel = channel
          for (const request of this.#taken()) request.start(channel)
        },
        onFailure: (error) => {
          this.#isProbing = false
          this.#fail(error)
        },
      }),
    )
  }

  #fail(error: InferenceError): void {
    for (const request of this.#taken()) request.fail(error)
  }

  #taken(): ReadonlyArray<WaitingRequest> {
    const requests = [...this.#waiting]
    this.#waiting.clear()
    return requests
  }

  #closed(): Unavailable {
    return new Unavailable({ message: `the client of ${ServerUrl.address(this.#settings.endpoint)} is closed` })
  }
}
