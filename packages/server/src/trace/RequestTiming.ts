/**
 * The times of one request in its response, as the standard header Server-Timing, for a caller that sends
 * `nereid-timing: 1`:
 *
 *   server-timing: total;dur=12.3, queue;dur=8.1, input;dur=0.1, compute;dur=4, output;dur=0.1, batch;desc="8"
 *
 * Durations are in milliseconds. A request that no instance here has executed has only a total.
 */
import type { Trace, TracePoint } from "@nereid/core/internal/request/Request"
import type { WireRequest } from "@nereid/core/internal/wire/WireRequest"
import { RequestTrace } from "./RequestTrace.ts"

export const requestHeader = "nereid-timing"
export const responseHeader = "server-timing"

export class RequestTiming implements Trace {
  readonly #points = new Map<TracePoint, number>()
  #rows: number | undefined

  at(point: TracePoint, nanos: number): void {
    this.#points.set(point, nanos)
  }

  batch(rows: number): void {
    this.#rows = rows
  }

  /** The request with this timing, in addition to its trace if it has one. */
  attach(wire: WireRequest): WireRequest {
    if (!(wire.trace instanceof RequestTrace)) return { ...wire, trace: this }
    wire.trace.timing = this
    return wire
  }

  /** Value of the header, from what is known by now; undefined before the end of the request. */
  value(): string | undefined {
    const durations = [
      ["total", this.#between("REQUEST_START", "REQUEST_END")],
      ["queue", this.#between("QUEUE_START", "COMPUTE_START")],
      ["input", this.#between("COMPUTE_START", "COMPUTE_INPUT_END")],
      ["compute", this.#compute()],
      ["output", this.#between("COMPUTE_OUTPUT_START", "COMPUTE_END")],
    ] as const
    const metrics = durations.flatMap(([name, nanos]) =>
      nanos === undefined ? [] : [`${name};dur=${Math.max(0, Math.round(nanos / 1000) / 1000)}`],
    )
    if (this.#rows !== undefined) metrics.push(`batch;desc="${this.#rows}"`)
    return metrics.length === 0 ? undefined : metrics.join(", ")
  }

  /** A failed execution has no parts. */
  #compute(): number | undefined {
    return this.#between("COMPUTE_INPUT_END", "COMPUTE_OUTPUT_START") ?? this.#between("COMPUTE_START", "COMPUTE_END")
  }

  #between(from: TracePoint, to: TracePoint): number | undefined {
    const [start, end] = [this.#points.get(from), this.#points.get(to)]
    return start === undefined || end === undefined ? undefined : end - start
  }
}
