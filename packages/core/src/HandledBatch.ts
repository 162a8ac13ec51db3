/** The requests of one batch while a handler has them all at once. A handler of single samples has RequestScope.ts. */
import type { Clock } from "effect"
import type { Batch } from "./Batch.ts"
import { Cancellation } from "./Cancellation.ts"
import { noParameters, type Parameters } from "./Inference.ts"
import type { HandledRequest } from "./RequestContext.ts"
import { RequestScope } from "./RequestScope.ts"

/** A batch as its handler sees it, beside its tensors. */
export interface HandledBatch {
  /** In the order of their rows. */
  readonly requests: ReadonlyArray<HandledRequest>
  /** Aborted once nobody waits for any of them. */
  readonly signal: AbortSignal
}

export class BatchScope implements HandledBatch {
  readonly #batch: Batch
  readonly #clock: Clock.Clock
  readonly #cancellation = new Cancellation()
  #requests: ReadonlyArray<RequestScope> | undefined

  constructor(batch: Batch, clock: Clock.Clock) {
    this.#batch = batch
    this.#clock = clock
  }

  /** Made once somebody asks for them: most handlers want the tensors alone. */
  get requests(): ReadonlyArray<RequestScope> {
    return (this.#requests ??= this.#batch.requests.map(
      (request) => new RequestScope(request, this.#clock, this.#cancellation),
    ))
  }

  get signal(): AbortSignal {
    return this.#cancellation.signal
  }

  /** Of one of the requests, as far as they have been set. */
  responseParameters(index: number): Parameters {
    return this.#requests?.[index]?.responseParameters() ?? noParameters
  }

  cancel(): void {
    this.#cancellation.cancel()
  }
}
