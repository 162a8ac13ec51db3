/** Spans of attempts, below the span of their call. A call without a span, or a program without a tracer, has none. */
import { Clock, Context, type Exit, type Tracer } from "effect"
import { RequestSpan, tracerOf } from "@nereid/core/internal/request/RequestSpan"
import type { WireRequest } from "@nereid/core/internal/wire/WireRequest"
import type { AttemptReason } from "./AttemptMetrics.ts"

export interface AttemptSpan {
  readonly span: Tracer.Span
  readonly end: (exit: Exit.Exit<unknown, unknown>) => void
}

/** Begins the span of an attempt; undefined for a call that is not traced. */
export type BeginSpan = (
  wire: WireRequest,
  replica: string,
  reason: AttemptReason,
  attempt: number,
) => AttemptSpan | undefined

export const beginner = (context: Context.Context<never>): BeginSpan => {
  const tracer = tracerOf(context)
  const clock = Context.get(context, Clock.Clock)
  return ({ modelName, parent }, replica, reason, attempt) => {
    if (tracer === undefined || parent === undefined) return undefined
    const attributes = { "nereid.replica": replica, "nereid.attempt": attempt, "nereid.attempt_reason": reason }
    return new RequestSpan({ tracer, clock, name: `attempt ${modelName}`, kind: "client", parent, attributes })
  }
}
