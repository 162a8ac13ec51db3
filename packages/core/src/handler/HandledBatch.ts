/**
 * The requests of one batch while a handler executes them together. RequestScope.ts is for handlers of single samples.
 */
import { Context, Tracer } from "effect"
import type { Batch } from "../batch/Batch.ts"
import { Caller, type CallerService, type HandlerEnvironment } from "../call/Caller.ts"
import { Cancellation } from "./Cancellation.ts"
import { noParameters, type Parameters } from "../request/Request.ts"
import type { Declared } from "../model/Declared.ts"
import * as PromiseCall from "../call/PromiseCall.ts"
import type { HandledRequest } from "./RequestContext.ts"
import type { Run } from "../call/PromiseCall.ts"
import { RequestScope } from "./RequestScope.ts"

/** A batch as its handler sees it, beside its tensors. */
export interface HandledBatch<P extends Declared = undefined> {
  /** In the order of their rows. */
  readonly requests: ReadonlyArray<HandledRequest<P>>
  /** Aborted once no caller waits for any of the requests. */
  readonly signal: AbortSignal
  /** Runs effects and streams, such as calls of other models, for functions that do not return effects. */
  readonly run: Run
}

export class BatchScope<P extends Declared = Declared> implements HandledBatch<P>, CallerService {
  readonly id = ""
  readonly #batch: Batch
  readonly #handling: HandlerEnvironment
  readonly #cancellation = new Cancellation()
  #requests: ReadonlyArray<RequestScope<P>> | undefined
  /** Requests that were cancelled before their contexts were made. */
  #cancelledIndexes: Array<number> | undefined

  constructor(batch: Batch, handling: HandlerEnvironment) {
    this.#batch = batch
    this.#handling = handling
  }

  /** Made on first use: most handlers need the tensors only. */
  get requests(): ReadonlyArray<RequestScope<P>> {
    return (this.#requests ??= this.#makeRequests())
  }

  get cycles() {
    return this.#handling.cycles
  }

  /** The latest deadline of the requests, as MonotonicTime; undefined if any request has none. */
  get expiresAt(): number | undefined {
    let last = 0
    for (const { deadline } of this.#batch.requests) {
      if (deadline === undefined) return undefined
      last = Math.max(last, deadline)
    }
    return last
  }

  get signal(): AbortSignal {
    return this.#cancellation.signal
  }

  get run(): Run {
    return PromiseCall.runner(
      () => this.context(this.#handling.context),
      () => this.signal,
    )
  }

  /** For the code that answers this batch. */
  context<R>(context: Context.Context<R>): Context.Context<R> {
    const withCaller = Context.add(context, Caller, this)
    const { span } = this.#batch
    return span === undefined ? withCaller : Context.add(withCaller, Tracer.ParentSpan, span)
  }

  /** Of one of the requests, as far as they have been set. */
  responseParameters(index: number): Parameters {
    return this.#requests?.[index]?.responseParameters() ?? noParameters
  }

  /** Cancels one of the requests. */
  cancelRequest(index: number): void {
    this.#cancelledIndexes ??= []
    this.#cancelledIndexes.push(index)
    this.#requests?.[index]?.cancel()
  }

  cancel(): void {
    this.#cancellation.cancel()
    for (const request of this.#requests ?? []) request.cancel()
  }

  #makeRequests(): ReadonlyArray<RequestScope<P>> {
    const requests = this.#batch.requests.map((request) => new RequestScope<P>(request, this.#handling))
    for (const [index, request] of requests.entries()) {
      if (this.#cancellation.isCancelled || this.#cancelledIndexes?.includes(index)) request.cancel()
    }
    return requests
  }
}
