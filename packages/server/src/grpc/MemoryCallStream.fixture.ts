/**
 * In-memory implementation of Call.ts for tests, without HTTP/2 or a socket. It shows that calls do not depend on
 * node:http2, and keeps the guarantees of Call.ts: no bytes while paused, and nothing after the end.
 */
import type { Call, CallHandler, CallStream, CallHeaders } from "./Call.ts"
import { messageLength, prefixLength } from "@nereid/core/internal/grpc/GrpcFrame"
import type { CallStatus } from "./CallStatus.ts"
import { type HeldMemory, MemoryBudget } from "../limit/MemoryBudget.ts"

export class MemoryCallStream implements CallStream {
  readonly memory: HeldMemory
  readonly lag: number
  /** Messages that have been sent. */
  readonly sent: Array<Uint8Array> = []
  /** Number of writes. */
  writes = 0
  /** "OK" or the failure; undefined before the end. */
  ending: "OK" | CallStatus | undefined
  paused = false
  /** Whether the client reads. */
  #reads = true
  #isFull = false
  #waiting: Array<Uint8Array> = []
  #ended = false
  readonly #call: Call
  readonly #done = Promise.withResolvers<"OK" | CallStatus>()
  #onSent = () => {}

  /** @throws Error if the call is not one of these */
  constructor(calls: CallHandler, headers: CallHeaders, memory = new MemoryBudget(Infinity).unattributed, lag = 0) {
    this.memory = memory
    this.lag = lag
    const all = { ":method": "POST", "content-type": "application/grpc", ...headers }
    if (!calls.handles(all)) throw new Error(`not taken: ${JSON.stringify(all)}`)
    this.#call = calls.begin(all, this)
  }

  /** The caller sends these bytes. */
  write(bytes: Uint8Array): void {
    this.#waiting.push(bytes)
    this.#deliver()
  }

  /** The caller has sent everything. */
  halfClose(): void {
    this.#ended = true
    this.#deliver()
  }

  /** The caller breaks off, or the connection is lost. */
  close(): void {
    this.#call.onClose()
  }

  stopReading(): void {
    this.#reads = false
  }

  startReading(): void {
    this.#reads = true
    if (!this.#isFull) return
    this.#isFull = false
    this.#call.onDrain()
  }

  /** Resolves with the status at the end. */
  get ended(): Promise<"OK" | CallStatus> {
    return this.#done.promise
  }

  /** Resolves once this many messages were sent. */
  async messages(count: number): Promise<ReadonlyArray<Uint8Array>> {
    while (this.sent.length < count) {
      await new Promise<void>((resolve) => {
        const onSent = () => resolve()
        this.#onSent = onSent
      })
    }
    return this.sent
  }

  reply(frame: Uint8Array): void {
    this.#take(frame)
    this.#finish("OK")
  }

  send(frames: Uint8Array): boolean {
    this.#take(frames)
    this.#isFull = !this.#reads
    return this.#reads
  }

  end(): void {
    this.#finish("OK")
  }

  fail(status: CallStatus): void {
    this.#finish(status)
  }

  pause(): void {
    this.paused = true
  }

  resume(): void {
    this.paused = false
    this.#deliver()
  }

  #deliver(): void {
    while (!this.paused) {
      const next = this.#waiting.shift()
      if (next === undefined) break
      // Its memory is freed if the call may not read it any more, as that of a socket's chunk.
      const chunk = Uint8Array.from(next)
      if (!this.#call.onData(chunk)) chunk.buffer.transfer(0)
    }
    if (this.paused || !this.#ended) return
    this.#ended = false
    this.#call.onEnd()
  }

  #take(frames: Uint8Array): void {
    if (this.ending !== undefined) throw new Error("something was sent behind the end")
    if (this.#isFull) throw new Error("something was sent to a caller that takes nothing")
    this.writes += 1
    for (let at = 0; at < frames.length;) {
      const end = at + prefixLength + messageLength(frames, at)
      this.sent.push(frames.slice(at + prefixLength, end))
      at = end
    }
    this.#onSent()
  }

  #finish(ending: "OK" | CallStatus): void {
    if (this.ending !== undefined) throw new Error("a call has ended twice")
    this.ending = ending
    this.#done.resolve(ending)
  }
}
