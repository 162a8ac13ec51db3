/**
 * What a handler may ask about the request that it answers, beside its tensors, and what it may say in the response
 * beside its outputs. Not a way to the caller: a handler answers by what it returns.
 */
import { Context, Effect } from "effect"
import { noParameters, type Parameter, type Parameters, type Request } from "./Inference.ts"

/**
 * Provided to a handler for the time of one request, so that it is no need of the model's layer:
 *
 * ```ts
 * Model.each(Sentiment, Effect.fn(function* ({ TEXT }) {
 *   const context = yield* RequestContext
 *   yield* context.setParameter("language", "en")
 *   return yield* decide(TEXT, context.parameters["threshold"])
 * }))
 * ```
 */
export class RequestContext extends Context.Service<
  RequestContext,
  {
    /** The caller's id; empty if it gave none. */
    readonly id: string
    /** Integers are bigint, doubles number. Forwarded headers are among them, as strings, by their lower-case names. */
    readonly parameters: Parameters
    /** Milliseconds since the epoch after which nobody waits for the answer; undefined where the caller set none. */
    readonly deadline: number | undefined
    /** Names of the outputs that the caller wants; empty for all. The others may be anything, and are not sent. */
    readonly requestedOutputs: ReadonlyArray<string>
    /**
     * Sets a parameter of the response; the last value counts, also among the rows of one request, which share it. Dies
     * where an integer has more than 64 bits.
     */
    readonly setParameter: (name: string, value: Parameter) => Effect.Effect<void>
  }
>()("@nereid/core/RequestContext") {}

export interface RequestScope {
  readonly context: RequestContext["Service"]
  /** Those that have been set so far. */
  readonly responseParameters: () => Parameters
}

export const make = (request: Request): RequestScope => {
  let set: Map<string, Parameter> | undefined
  return {
    context: {
      id: request.id,
      parameters: request.parameters,
      deadline: request.deadline,
      requestedOutputs: request.requestedOutputs ?? [],
      setParameter: (name, value) =>
        Effect.sync(() => {
          if (typeof value === "bigint" && (value < -(2n ** 63n) || value >= 2n ** 64n)) {
            throw new RangeError(`response parameter '${name}' must be an integer of at most 64 bits, got ${value}`)
          }
          set ??= new Map()
          set.set(name, value)
        }),
    },
    responseParameters: () => (set === undefined ? noParameters : Object.fromEntries(set)),
  }
}
