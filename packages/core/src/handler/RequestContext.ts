/**
 * The request context of a handler: properties of the request other than its tensors, and parameters of the response.
 * Handlers send outputs only through their return value.
 */
import { Context, type Effect } from "effect"
import type { Run } from "../call/PromiseCall.ts"
import type { Declared, RequestParameters, ResponseParameters } from "../model/Declared.ts"

/** A request as its handler sees it. */
export interface HandledRequest<P extends Declared = undefined> {
  /** The caller's id; empty if it gave none. */
  readonly id: string
  /** Samples in it: the extent of the batch dimension, 1 for a model that does not batch. */
  readonly rows: number
  /**
   * The declared parameters, decoded. Without a declaration, all received parameters: integers are bigint, doubles
   * number. These include forwarded headers, as strings by lower-case name.
   */
  readonly parameters: RequestParameters<P>
  /** The caller's deadline, in milliseconds since the epoch; undefined if the caller set none. */
  readonly deadline: number | undefined
  /** Milliseconds until the deadline, at least 0; undefined if the caller set no deadline. */
  readonly remaining: () => number | undefined
  /** Names of the outputs that the caller wants; empty for all. The others may be anything, and are not sent. */
  readonly requestedOutputs: ReadonlyArray<string>
  /** Aborted once no caller waits for the response. */
  readonly signal: AbortSignal
  /**
   * Sets a parameter of the response: one that the model declares or, without a declaration, any. The last value
   * counts, also among the rows of one request. Dies if an integer exceeds 64 bits, if the wire has no form for the
   * value, or if it does not match the declaration.
   */
  readonly setParameter: <K extends keyof ResponseParameters<P> & string>(
    name: K,
    value: ResponseParameters<P>[K],
  ) => Effect.Effect<void>
  /**
   * Sets a parameter of the response, for functions that do not return effects.
   * @throws RangeError if an integer exceeds 64 bits; TypeError if the wire has no form for the value, or it is not
   * declared
   */
  readonly setParameterUnsafe: <K extends keyof ResponseParameters<P> & string>(
    name: K,
    value: ResponseParameters<P>[K],
  ) => void
  /**
   * Adds a moment with this name to the trace of the request; at most 1,000 for each request. In the OpenTelemetry mode
   * of traces, `NAME_START` and `NAME_END` enclose a span `NAME`. Without a trace it has no effect.
   */
  readonly traceActivity: (name: string) => void
  /** Runs effects and streams, such as calls of other models, for functions that do not return effects. */
  readonly run: Run<RequestContext>
}

/**
 * The context of one request, provided to the effects of a handler of single samples, so that the model's layer does
 * not require it. All handlers receive the same as their function's second argument; handlers of several requests
 * receive a list.
 *
 * ```ts
 * Model.each(Sentiment, Effect.fn(function* ({ TEXT }) {
 *   const context = yield* RequestContext
 *   yield* context.setParameter("language", "en")
 *   return yield* decide(TEXT, context.parameters["threshold"])
 * }))
 * ```
 *
 * Parameters are untyped and as received, because the service does not know the model and its declared parameters.
 */
export class RequestContext extends Context.Service<RequestContext, HandledRequest>()("@nereid/core/RequestContext") {}
