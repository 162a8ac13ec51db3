/**
 * Asking a model on the record: when the request began and ended, and what it was answered, for a request that has a trace.
 * Any other goes its way at the cost of one check.
 */
import { Effect, Result } from "effect"
import type { WireResponse } from "@nereid/core/internal/wire/WireRequest"
import type { InferenceReply, Receiver, Submit } from "../dispatch/InferenceDispatch.ts"
import { RequestTrace } from "./RequestTrace.ts"
import type { Tracing } from "./Tracing.ts"

export const traced =
  (submit: Submit, { now }: Pick<Tracing, "now">): Submit =>
  (wire, deadline, receiver) => {
    const { trace } = wire
    if (trace === undefined) return submit(wire, deadline, receiver)
    trace.at("REQUEST_START", now())
    const ended = () => trace.at("REQUEST_END", now())
    const answered = (response: WireResponse) => {
      if (trace instanceof RequestTrace) trace.answered(response)
    }
    const end: InferenceReply = (outcome) => {
      if (Result.isSuccess(outcome)) answered(outcome.success)
      ended()
      return typeof receiver === "function" ? receiver(outcome) : receiver.end(outcome)
    }
    const emitted =
      (emit: Receiver["emit"]): Receiver["emit"] =>
      (response) =>
        Effect.suspend(() => {
          answered(response)
          return emit(response)
        })
    const cancel = submit(wire, deadline, typeof receiver === "function" ? end : { emit: emitted(receiver.emit), end })
    return () => {
      cancel()
      ended()
    }
  }
