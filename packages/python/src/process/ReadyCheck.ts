/**
 * Asks `is_ready` of a model. One call is under way at a time: checks that come meanwhile share its result, also once a
 * slow call has ended after its limit.
 */
import * as FrameKind from "../wire/FrameKind.ts"
import * as Header from "../wire/Header.ts"

export interface Readiness {
  readonly isReady: boolean
  /** Undefined for a model that is ready. */
  readonly reason: string | undefined
}

/** Milliseconds that a check waits for `is_ready`. */
const limit = 5000

export const ready: Readiness = { isReady: true, reason: undefined }

export class ReadyCheck {
  readonly #instance: string
  readonly #send: (kind: number, header: string) => void
  readonly #waiting = new Set<(readiness: Readiness) => void>()
  #number = 0
  #isPending = false

  constructor(instance: string, send: (kind: number, header: string) => void) {
    this.#instance = instance
    this.#send = send
  }

  /** Calls `done` once. */
  check(done: (readiness: Readiness) => void): void {
    const finish = (readiness: Readiness) => {
      if (!this.#waiting.delete(finish)) return
      clearTimeout(timer)
      done(readiness)
    }
    const timer = setTimeout(() => finish(notReady("Timed out waiting for user-defined is_ready() response")), limit)
    timer.unref()
    this.#waiting.add(finish)
    if (this.#isPending) return
    this.#isPending = true
    this.#number += 1
    this.#send(FrameKind.CHECK_READY, `{"n":${this.#number}}`)
  }

  received(header: Header.Header): void {
    this.#isPending = false
    const isReady = header["ready"] === true || header["ready"] === 1
    const failed = `Model '${this.#instance}' is not ready (user-defined check failed).`
    this.#finish(isReady ? ready : notReady(Header.text(header, "why") ?? failed))
  }

  /** The process has died. */
  close(reason: string): void {
    this.#finish(notReady(reason))
  }

  #finish(readiness: Readiness): void {
    for (const finish of this.#waiting) finish(readiness)
  }
}

const notReady = (reason: string): Readiness => ({ isReady: false, reason })
