/** The log of the server as a stream: the last lines, and further ones a few times per second. */
import { logMillis, maxLogLines } from "@nereid/dashboard/internal/live/LogMessage"
import { Effect, type Scope } from "effect"
import type { Gateway } from "../gateway/Gateway.ts"
import type { OutgoingResponse } from "../port/HttpExchange.ts"
import { event, EventStream } from "./EventStream.ts"
import { LogRing } from "./LogRing.ts"

export type Logged = Pick<Gateway, "logging" | "stopping">

/** Keeps lines until the scope closes. Streams end when the server begins to stop. */
export const make = (gateway: Logged): Effect.Effect<LogView, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => new LogView(gateway)),
    (view) => Effect.sync(() => view.close()),
  )

export class LogView {
  readonly #ring = new LogRing()
  readonly #viewers = new EventStream()
  readonly #stopping: AbortSignal
  readonly #unobserve: () => void
  readonly #stop = () => {
    this.#flush()
    this.#viewers.close()
  }
  /** Lines that viewers do not have yet. */
  #pending: Array<string> = []
  #timer: NodeJS.Timeout | undefined

  constructor({ logging, stopping }: Logged) {
    this.#stopping = stopping
    this.#unobserve = logging.events.observe((logEvent) => this.#add(this.#ring.add(logEvent)))
    stopping.addEventListener("abort", this.#stop)
  }

  /** Answers a request with the stream. */
  open(response: OutgoingResponse): void {
    // The opening has them.
    this.#flush()
    this.#viewers.open(response, () => [Buffer.from(event(`{"type":"opening","lines":[${this.#ring.lines.join()}]}`))])
  }

  close(): void {
    clearTimeout(this.#timer)
    this.#unobserve()
    this.#stopping.removeEventListener("abort", this.#stop)
    this.#viewers.close()
  }

  #add(line: string): void {
    if (this.#viewers.size === 0) return
    this.#pending.push(line)
    if (this.#pending.length > maxLogLines) this.#pending.shift()
    this.#timer ??= setTimeout(() => this.#flush(), logMillis).unref()
  }

  #flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#pending.length === 0) return
    const lines = this.#pending.join()
    this.#pending = []
    this.#viewers.send(Buffer.from(event(`{"type":"lines","lines":[${lines}]}`)))
  }
}
