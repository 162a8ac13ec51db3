/**
 * Creates spans of requests with the provided tracer, as children of the clients' spans (W3C's traceparent, in a header
 * or gRPC metadata). Without a tracer, no header is read. RequestSpan.ts of core creates the child spans.
 */
import { Effect, Exit, Option, Result } from "effect"
import * as HttpTraceContext from "effect/http/HttpTraceContext"
import * as Headers from "effect/http/Headers"
import type { Cancel } from "@nereid/core/internal/request/Request"
import { RequestSpan, type SpanSource, tracerOf } from "@nereid/core/internal/request/RequestSpan"
import type { WireRequest } from "@nereid/core/internal/wire/WireRequest"
import type { ForwardedHeaders } from "../dispatch/ForwardedHeaders.ts"
import type { InferenceDispatch, InferenceReply } from "../dispatch/InferenceDispatch.ts"
import type { Tracing } from "./Tracing.ts"

/** The tracer and clock of the layer that is being built; undefined without a tracer. */
export const make: Effect.Effect<SpanSource | undefined> = Effect.clockWith((clock) =>
  Effect.map(Effect.context<never>(), (context) => {
    const tracer = tracerOf(context)
    return tracer && { tracer, clock }
  }),
)

/** Also reads the client's span from the headers, if there is a tracer or traces join those of clients. */
export const joining = (
  { spans, tracing }: { readonly spans?: SpanSource | undefined; readonly tracing: Pick<Tracing, "joinsCallers"> },
  forward: ForwardedHeaders | undefined,
): ForwardedHeaders | undefined => {
  if (spans === undefined && !tracing.joinsCallers) return forward
  return (wire, headers) => {
    const all = [...headers]
    const [, value] = all.find(([name]) => name.toLowerCase() === "traceparent") ?? []
    const text = typeof value === "string" ? value : value?.[0]
    const parent = text && Option.getOrUndefined(HttpTraceContext.w3c(Headers.fromInput({ traceparent: text })))
    const joined = parent ? { ...wire, parent } : wire
    return forward === undefined ? Result.succeed(joined) : forward(joined, all)
  }
}

/** Adds a span to each request of a dispatch, from here to its end. */
export const spanned = ({ infer, stream }: InferenceDispatch, spans: SpanSource): InferenceDispatch => ({
  infer: (wire, deadline, reply, memory) => {
    const trace = begin(wire, spans)
    return cancelling(trace, infer({ ...wire, trace }, deadline, ending(trace, reply), memory))
  },
  stream: (wire, deadline, receiver, memory) => {
    const trace = begin(wire, spans)
    return cancelling(
      trace,
      stream({ ...wire, trace }, deadline, { ...receiver, end: ending(trace, receiver.end) }, memory),
    )
  },
})

const begin = (
  { modelName, modelVersion, id, parent, trace: secondary }: WireRequest,
  { tracer, clock }: SpanSource,
): RequestSpan => {
  const attributes = {
    "nereid.model": modelName,
    ...(modelVersion !== "" && { "nereid.version": modelVersion }),
    ...(id !== "" && { "nereid.request_id": id }),
  }
  const name = `infer ${modelName}`
  return new RequestSpan({ tracer, clock, name, kind: "server", parent, attributes, secondary })
}

const ending =
  (trace: RequestSpan, reply: InferenceReply): InferenceReply =>
  (outcome) => {
    trace.end(Result.isSuccess(outcome) ? Exit.void : Exit.fail(outcome.failure))
    reply(outcome)
  }

const cancelling =
  (trace: RequestSpan, cancel: Cancel): Cancel =>
  () => {
    cancel()
    trace.end(Exit.interrupt())
  }
