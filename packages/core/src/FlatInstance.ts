/** An instance of a model with flat batches over one of what it is inside (FlatBatch.ts): a batch in, one request on. */
import { Exit, Result } from "effect"
import * as Batch from "./Batch.ts"
import type { Definition } from "./Definition.ts"
import type { InferenceError } from "./Errors.ts"
import type { Fields } from "./Field.ts"
import * as FlatBatch from "./FlatBatch.ts"
import type { Execution, Instance, Interrupt, Settle } from "./Instance.ts"

export class FlatInstance implements Instance {
  readonly #definition: Definition<Fields, Fields>
  readonly #flat: FlatBatch.FlatBatch
  readonly #inner: Instance

  constructor(definition: Definition<Fields, Fields>, flat: FlatBatch.FlatBatch, inner: Instance) {
    this.#definition = definition
    this.#flat = flat
    this.#inner = inner
  }

  get name() {
    return this.#inner.name
  }

  get concurrency() {
    return this.#inner.concurrency
  }

  status() {
    return this.#inner.status()
  }

  get onStatusChange() {
    return this.#inner.onStatusChange
  }

  set onStatusChange(changed: () => void) {
    this.#inner.onStatusChange = changed
  }

  execute(batch: Batch.Batch, settle: Settle): Interrupt {
    const whole = Batch.make([FlatBatch.join(this.#flat, batch)])
    return this.#inner.execute(whole, (exit) => settle(Exit.isSuccess(exit) ? this.#cut(batch, exit.value) : exit))
  }

  #cut(batch: Batch.Batch, execution: Execution): Exit.Exit<Execution, InferenceError> {
    const [outcome] = execution.outcomes
    if (outcome === undefined) return Exit.die("An instance has answered no request of its batch. This is a bug.")
    // It cannot tell which of the requests it is.
    if (Result.isFailure(outcome)) return Exit.fail(outcome.failure)
    const responses = FlatBatch.cut(this.#flat, this.#definition, batch, outcome.success)
    if (Result.isFailure(responses)) return Exit.fail(responses.failure)
    return Exit.succeed({ ...execution, outcomes: responses.success.map(Result.succeed) })
  }
}
