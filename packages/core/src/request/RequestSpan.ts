/**
 * Traces one request as a span of the program's tracer, with child spans for its time in the queue and in an instance.
 * Requires a tracer in the context; the server writes Triton's trace files.
 *
 *   caller's span ─► request ─┬─ queue
 *                             ├─ compute ··· links to the batch that the request was part of
 *                             └─ spans of the handler (Effect.withSpan), if it executes one request at a time
 */
import { type Clock, Context, type Exit, Option, Tracer } from "effect"
import type { CallTrace, Trace, TracePoint } from "./Request.ts"

/** The tracer of spans, and the clock of their times. */
export interface SpanSource {
  readonly tracer: Tracer.Tracer
  readonly clock: Clock.Clock
}

export interface RequestSpanOptions extends SpanSource {
  readonly name: string
  readonly kind: Tracer.SpanKind
  /** Undefined if the request begins a trace. */
  readonly parent: Tracer.AnySpan | undefined
  readonly attributes: Readonly<Record<string, unknown>>
  /** Receives all points of this trace as well. */
  readonly secondary?: Trace | undefined
}

/** The tracer of these services; undefined for Effect's native tracer, whose spans are not exported. */
export const tracerOf = (context: Context.Context<never>): Tracer.Tracer | undefined => {
  const tracer = Context.get(context, Tracer.Tracer)
  return tracer === Tracer.nativeTracer ? undefined : tracer
}

export class RequestSpan implements CallTrace {
  readonly span: Tracer.Span
  readonly #options: RequestSpanOptions
  /** The start on both clocks, to convert times between them. */
  readonly #startedAt: { readonly epoch: bigint; readonly monotonic: number }
  readonly #points = new Map<TracePoint, number>()
  #batch: Tracer.AnySpan | undefined
  #isOver = false

  constructor(options: RequestSpanOptions) {
    const { clock, name, kind, parent, attributes } = options
    this.#options = options
    this.#startedAt = {
      epoch: clock.currentTimeNanosUnsafe(),
      monotonic: Number(clock.monotonicTimeNanosUnsafe()),
    }
    this.span = this.#begin(name, kind, parent, this.#startedAt.epoch)
    for (const [key, value] of Object.entries(attributes)) this.span.attribute(key, value)
  }

  at(point: TracePoint, nanos: number): void {
    this.#options.secondary?.at(point, nanos)
    this.#points.set(point, nanos)
  }

  batch(rows: number): void {
    this.#options.secondary?.batch?.(rows)
  }

  joins(batch: Tracer.AnySpan): void {
    this.#batch = batch
  }

  // Functions and not methods: they are handed on.
  get below(): NonNullable<Trace["below"]> {
    const { tracer, clock } = this.#options
    return (name, secondary) =>
      new RequestSpan({ tracer, clock, name, kind: "internal", parent: this.span, attributes: {}, secondary })
  }

  activity(name: string, nanos: number): void {
    this.#options.secondary?.activity?.(name, nanos)
    this.span.event(name, this.#epoch(nanos))
  }

  get child(): Trace["child"] {
    const { secondary } = this.#options
    return secondary?.child?.bind(secondary)
  }

  /** Harmless when it has ended already. */
  end(exit: Exit.Exit<unknown, unknown>): void {
    if (this.#isOver) return
    this.#isOver = true
    const endedAt = this.#options.clock.currentTimeNanosUnsafe()
    const queued = this.#points.get("QUEUE_START")
    const computeStart = this.#points.get("COMPUTE_START")
    if (queued !== undefined) this.#part("queue", queued, computeStart, endedAt, exit)
    if (computeStart !== undefined) this.#part("compute", computeStart, this.#points.get("COMPUTE_END"), endedAt, exit)
    this.span.end(endedAt, exit)
  }

  /** Records a part of the request; a part without an end ends with the request. */
  #part(
    name: "queue" | "compute",
    from: number,
    to: number | undefined,
    endedAt: bigint,
    exit: Exit.Exit<unknown, unknown>,
  ): void {
    const part = this.#begin(name, "internal", this.span, this.#epoch(from))
    if (name === "compute" && this.#batch !== undefined) part.addLinks([{ span: this.#batch, attributes: {} }])
    part.end(to === undefined ? endedAt : this.#epoch(to), exit)
  }

  #epoch(monotonic: number): bigint {
    return this.#startedAt.epoch + BigInt(Math.round(monotonic - this.#startedAt.monotonic))
  }

  #begin(name: string, kind: Tracer.SpanKind, parent: Tracer.AnySpan | undefined, startTime: bigint): Tracer.Span {
    return begin(this.#options.tracer, { name, kind, parent, startTime, links: [], sampled: parent?.sampled ?? true })
  }
}

/** The span of a batch. With several requests it is a separate trace, which links to theirs. */
export const ofBatch = (
  tracer: Tracer.Tracer,
  clock: Clock.Clock,
  name: string,
  requests: ReadonlyArray<Tracer.AnySpan>,
): Tracer.Span => {
  const [first] = requests
  return begin(tracer, {
    name,
    kind: "internal",
    parent: requests.length === 1 ? first : undefined,
    startTime: clock.currentTimeNanosUnsafe(),
    links: requests.map((span) => ({ span, attributes: {} })),
    sampled: requests.some(({ sampled }) => sampled),
  })
}

const begin = (
  tracer: Tracer.Tracer,
  options: {
    readonly name: string
    readonly kind: Tracer.SpanKind
    readonly parent: Tracer.AnySpan | undefined
    readonly startTime: bigint
    readonly links: Array<Tracer.SpanLink>
    readonly sampled: boolean
  },
): Tracer.Span =>
  tracer.span({
    ...options,
    parent: Option.fromUndefinedOr(options.parent),
    annotations: Context.empty(),
    root: options.parent === undefined,
  })
