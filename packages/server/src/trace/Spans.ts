/**
 * Requests as spans of the tracer that somebody has provided, as parts of the traces of their callers (W3C's traceparent, in a
 * header or in gRPC's metadata). Without a tracer there is nothing of this, and no header is looked at. What a span has below
 * it is core's RequestSpan.ts.
 */
import { type Clock, Effect, Exit, Option, Result, type Tracer } from "effect"
import * as HttpTraceContext from "effect/http/HttpTraceContext"
import * as Headers from "effect/http/Headers"
import { RequestSpan, tracerOf } from "@nereid/core/internal/request/RequestSpan"
import type { ForwardedHeaders } from "../dispatch/ForwardedHeaders.ts"
import type { InferenceReply, Submit } from "../dispatch/InferenceDispatch.ts"

export interface Spans {
  readonly tracer: Tracer.Tracer
  readonly clock: Clock.Clock
}

/** Those of the layer that is being built; undefined where nobody has provided a tracer. */
export const make: Effect.Effect<Spans | undefined> = Effect.clockWith((clock) =>
  Effect.map(Effect.context<never>(), (context) => {
    const tracer = tracerOf(context)
    return tracer && { tracer, clock }
  }),
)

/** Also takes the caller's span from the headers, where there are spans. */
export const joining = (
  spans: Spans | undefined,
  forward: ForwardedHeaders | undefined,
): ForwardedHeaders | undefined => {
  if (spans === undefined) return forward
  return (wire, headers) => {
    const all = [...headers]
    const [, value] = all.find(([name]) => name.toLowerCase() === "traceparent") ?? []
    const text = typeof value === "string" ? value : value?.[0]
    const parent = text && Option.getOrUndefined(HttpTraceContext.w3c(Headers.fromInput({ traceparent: text })))
    const joined = parent ? { ...wire, parent } : wire
    return forward === undefined ? Result.succeed(joined) : forward(joined, all)
  }
}

/** Each request has a span, from here to its answer. */
export const spanned =
  (submit: Submit, { tracer, clock }: Spans): Submit =>
  (wire, deadline, receiver) => {
    const { modelName, modelVersion, id, parent, trace: beside } = wire
    const attributes = {
      "nereid.model": modelName,
      ...(modelVersion !== "" && { "nereid.version": modelVersion }),
      ...(id !== "" && { "nereid.request_id": id }),
    }
    const name = `infer ${modelName}`
    const trace = new RequestSpan({ tracer, clock, name, kind: "server", parent, attributes, beside })
    const end: InferenceReply = (outcome) => {
      trace.end(Result.isSuccess(outcome) ? Exit.void : Exit.fail(outcome.failure))
      return typeof receiver === "function" ? receiver(outcome) : receiver.end(outcome)
    }
    const cancel = submit({ ...wire, trace }, deadline, typeof receiver === "function" ? end : { ...receiver, end })
    return () => {
      cancel()
      trace.end(Exit.interrupt())
    }
  }
