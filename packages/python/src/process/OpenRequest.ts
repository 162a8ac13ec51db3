/**
 * One request that a model process has: its responses by a sender, and its end, during its batch or after it.
 *
 *   during the batch     responses, end ─► outcome of the batch
 *   after the batch      responses, end ─► reply
 */
import { type Effect, Exit, Result } from "effect"
import { ExecutionFailed, type InferenceError } from "@nereid/core/Errors"
import { noParameters, type Reply, type Request, type Response, type Rest } from "@nereid/core/internal/request/Request"

export type Outcome = Result.Result<Response, InferenceError>

export interface OpenRequestOptions {
  readonly request: Request
  /** Whether it may have any number of responses. */
  readonly decoupled: boolean
  /** Runs the effect that passes a response on. */
  readonly run: (
    effect: Effect.Effect<void, InferenceError>,
    onExit: (exit: Exit.Exit<void, InferenceError>) => void,
  ) => void
  /** Tells the process that no caller waits for the request any more. */
  readonly onCancel: () => void
}

/** Says that there are no more responses. */
const last: Response = { outputs: [], parameters: noParameters }

export class OpenRequest {
  readonly #options: OpenRequestOptions
  /** Of a model that is not decoupled. */
  #response: Response | undefined
  #failure: InferenceError | undefined
  #isOver = false
  #isCancelled = false
  #reply: Reply | undefined

  constructor(options: OpenRequestOptions) {
    this.#options = options
  }

  get request(): Request {
    return this.#options.request
  }

  /** Whether its last response has come. */
  get isOver(): boolean {
    return this.#isOver
  }

  /**
   * Takes a response of a sender; no further one follows the last. An error ends the request, unless its caller takes
   * errors as responses: those behind such an end are dropped.
   */
  respond(outcome: Outcome, isLast = false): void {
    if (this.#isOver || this.#failure !== undefined || this.#isCancelled) return
    const { decoupled, request, run } = this.#options
    const goesOn = decoupled && request.takesErrors === true && !isLast
    if (Result.isFailure(outcome) && !goesOn) return this.#fail(outcome.failure)
    const response = Result.isFailure(outcome) ? { ...last, error: outcome.failure } : outcome.success
    if (!decoupled) {
      this.#response = response
      return
    }
    const { emit } = request
    if (emit === undefined) return
    run(emit(response, isLast), (exit) => {
      if (Exit.isSuccess(exit) || this.#isOver) return
      const error = Exit.findError(exit)
      this.cancel()
      if (Result.isSuccess(error)) this.#fail(error.success)
    })
  }

  /** Ends it: no further response will come. */
  end(error?: InferenceError): void {
    if (this.#isOver) return
    this.#isOver = true
    if (error !== undefined) this.#failure ??= error
    this.#finish()
  }

  /** Its outcome, once it is over. */
  get outcome(): Outcome {
    if (this.#failure !== undefined) return Result.fail(this.#failure)
    if (this.#options.decoupled) return Result.succeed(last)
    if (this.#response !== undefined) return Result.succeed(this.#response)
    return Result.fail(new ExecutionFailed({ message: "the model ended a request without a response" }))
  }

  /** No caller waits for it any more. */
  cancel(): void {
    if (this.#isCancelled || this.#isOver) return
    this.#isCancelled = true
    this.#options.onCancel()
  }

  /** Goes on after the batch. */
  readonly rest: Rest = (reply) => {
    this.#reply = reply
    this.#finish()
    return () => {
      this.#reply = undefined
      this.cancel()
    }
  }

  /** The caller of a request that goes on learns of an error at once, and not at the end. */
  #fail(error: InferenceError): void {
    this.#failure = error
    this.#finish()
  }

  #finish(): void {
    const reply = this.#reply
    if (reply === undefined || (!this.#isOver && this.#failure === undefined)) return
    this.#reply = undefined
    reply(this.outcome)
  }
}
