/**
 * Records in the trace of a request when it began and ended, and its responses. A request without a trace costs one
 * check.
 */
import { Effect, Result } from "effect"
import type { Cancel } from "@nereid/core/internal/request/Request"
import type { WireRequest, WireResponse } from "@nereid/core/internal/wire/WireRequest"
import type { InferenceDispatch, InferenceReply } from "../dispatch/InferenceDispatch.ts"
import { RequestTrace } from "./RequestTrace.ts"
import type { Tracing } from "./Tracing.ts"

/** Adds the recording to a dispatch. */
export const traced = ({ infer, stream }: InferenceDispatch, { now }: Pick<Tracing, "now">): InferenceDispatch => {
  const ending =
    (trace: Trace, reply: InferenceReply): InferenceReply =>
    (outcome) => {
      if (Result.isSuccess(outcome)) responded(trace, outcome.success)
      trace.at("INFER_RESPONSE_COMPLETE", now())
      trace.at("REQUEST_END", now())
      reply(outcome)
    }
  const cancelling =
    (trace: Trace, cancel: Cancel): Cancel =>
    () => {
      cancel()
      trace.at("REQUEST_END", now())
    }
  return {
    infer: (wire, deadline, reply, memory) => {
      const { trace } = wire
      if (trace === undefined) return infer(wire, deadline, reply, memory)
      trace.at("REQUEST_START", now())
      return cancelling(trace, infer(wire, deadline, ending(trace, reply), memory))
    },
    stream: (wire, deadline, receiver, memory) => {
      const { trace } = wire
      if (trace === undefined) return stream(wire, deadline, receiver, memory)
      trace.at("REQUEST_START", now())
      const emit = (response: WireResponse, isLast?: boolean) =>
        Effect.suspend(() => {
          responded(trace, response)
          return receiver.emit(response, isLast)
        })
      return cancelling(trace, stream(wire, deadline, { ...receiver, emit, end: ending(trace, receiver.end) }, memory))
    },
  }
}

type Trace = NonNullable<WireRequest["trace"]>

const responded = (trace: Trace, response: WireResponse): void => {
  if (trace instanceof RequestTrace) trace.respondedOnWire(response)
}
