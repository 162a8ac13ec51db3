/**
 * One request that a model process has: its responses by a sender, and its end, during its batch or after it.
 *
 *   during the batch     responses, end ─► outcome of the batch
 *   after the batch      responses, end ─► reply
 *
 * The reader takes responses one by one. Those behind wait here. They are few: ResponseCredit.ts lets the process wait.
 */
import { type Effect, Exit, type Fiber, Result } from "effect"
import { ExecutionFailed, type InferenceError, Unavailable } from "@nereid/core/Errors"
import { noParameters, type Reply, type Request, type Response, type Rest } from "@nereid/core/internal/request/Request"
import { ResponseCredit, type ResponseCreditOptions } from "./ResponseCredit.ts"

export type Outcome = Result.Result<Response, InferenceError>

export interface OpenRequestOptions extends ResponseCreditOptions {
  readonly request: Request
  /** Whether it may have any number of responses. */
  readonly decoupled: boolean
  /** Runs the effect that passes a response on. */
  readonly fork: (effect: Effect.Effect<void, InferenceError>) => Fiber.Fiber<void, InferenceError>
  /** Tells the process that no caller waits for the request any more. */
  readonly onCancel: () => void
}

/** Says that there are no more responses. */
const last: Response = { outputs: [], parameters: noParameters }

interface WaitingResponse {
  readonly response: Response
  readonly isLast: boolean
  /** Of its outputs, as far as they count as held for the caller. */
  readonly bytes: number
}

const sizeOf = ({ outputs }: Response): number => outputs.reduce((sum, tensor) => sum + (tensor?.bytes.length ?? 0), 0)

export const stopping = (): InferenceError => new Unavailable({ message: "the model is stopping" })

type Emitted = Exit.Exit<void, InferenceError>

export class OpenRequest {
  readonly #options: OpenRequestOptions
  /** Of a decoupled model; undefined for one with a single response. */
  readonly #credit: ResponseCredit | undefined
  /** Responses of a decoupled model that wait for the reader. */
  readonly #waiting: Array<WaitingResponse> = []
  /** Passes a response on, while its reader takes it. */
  #emitting: Fiber.Fiber<void, InferenceError> | undefined
  #isEmitting = false
  /** Of a model that is not decoupled. */
  #response: Response | undefined
  #failure: InferenceError | undefined
  #isOver = false
  #isCancelled = false
  #reply: Reply | undefined

  constructor(options: OpenRequestOptions) {
    this.#options = options
    this.#credit = options.decoupled ? new ResponseCredit(options) : undefined
  }

  get request(): Request {
    return this.#options.request
  }

  /** Whether its last response has come. */
  get isOver(): boolean {
    return this.#isOver
  }

  /** Whether its outcome is known, and the reader has all responses before. */
  get isSettled(): boolean {
    return (this.#isOver || this.#failure !== undefined) && !this.#isEmitting
  }

  /**
   * Takes a response of a sender; no further one follows the last. An error ends the request, unless its caller takes
   * errors as responses: those behind such an end are dropped.
   */
  respond(outcome: Outcome, isLast = false): void {
    const { decoupled, request } = this.#options
    this.#credit?.sent()
    if (this.#isOver || this.#failure !== undefined || this.#isCancelled) return this.#credit?.taken()
    const goesOn = decoupled && request.takesErrors === true && !isLast
    if (Result.isFailure(outcome) && !goesOn) {
      this.#credit?.taken()
      return this.#fail(outcome.failure)
    }
    const response = Result.isFailure(outcome) ? { ...last, error: outcome.failure } : outcome.success
    if (!decoupled) {
      this.#response = response
      return
    }
    const bytes = this.#isEmitting ? sizeOf(response) : 0
    this.#waiting.push({ response, isLast, bytes })
    if (!this.#isEmitting) return this.#emit()
    request.hold?.(bytes)
  }

  /** Ends it: no further response will come. An error drops those that wait for the reader. */
  end(error?: InferenceError): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#credit?.close()
    if (error !== undefined) {
      this.#failure ??= error
      this.#drop()
    }
    this.#finish()
  }

  /** Its outcome, once it is settled. */
  get outcome(): Outcome {
    if (this.#failure !== undefined) return Result.fail(this.#failure)
    if (this.#options.decoupled) {
      // Responses may be missing. Of a model that stops, the caller may still be there.
      return this.#isCancelled ? Result.fail(stopping()) : Result.succeed(last)
    }
    if (this.#response !== undefined) return Result.succeed(this.#response)
    return Result.fail(new ExecutionFailed({ message: "the model ended a request without a response" }))
  }

  /** No caller waits for it any more. */
  cancel(): void {
    if (this.#isCancelled) return
    this.#isCancelled = true
    this.#credit?.close()
    this.#drop()
    if (!this.#isOver) this.#options.onCancel()
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

  /** Passes responses on until one has to wait for the reader. */
  #emit(): void {
    this.#isEmitting = true
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      const { response, isLast, bytes } = next
      const { emit, hold } = this.#options.request
      hold?.(-bytes)
      const exit = this.#begin(emit?.(response, isLast) ?? Exit.void)
      if (exit === undefined) return
      this.#emitted(exit)
    }
    this.#isEmitting = false
    this.#finish()
  }

  /** Undefined while the reader does not take the response. */
  #begin(emitted: Effect.Effect<void, InferenceError>): Emitted | undefined {
    if (Exit.isExit(emitted) && Exit.isSuccess(emitted)) return Exit.void
    const fiber = this.#options.fork(emitted)
    const exit = fiber.pollUnsafe()
    if (exit !== undefined) return exit
    if (!this.#isEmitting) {
      // Its caller has left meanwhile.
      fiber.interruptUnsafe()
      return Exit.void
    }
    this.#emitting = fiber
    fiber.addObserver((exit) => {
      if (this.#emitting !== fiber) return
      this.#emitting = undefined
      this.#emitted(exit)
      this.#emit()
    })
    return undefined
  }

  #emitted(exit: Emitted): void {
    this.#credit?.taken()
    if (Exit.isSuccess(exit) || this.#isCancelled) return
    const error = Exit.findError(exit)
    this.cancel()
    if (Result.isSuccess(error)) this.#failure ??= error.success
  }

  /** Nothing more goes to the reader. */
  #drop(): void {
    const { hold } = this.#options.request
    for (const { bytes } of this.#waiting) hold?.(-bytes)
    this.#waiting.length = 0
    this.#isEmitting = false
    const fiber = this.#emitting
    this.#emitting = undefined
    fiber?.interruptUnsafe()
  }

  /** The caller of a request that goes on learns of an error at once, and not at the end. */
  #fail(error: InferenceError): void {
    this.#failure = error
    this.#finish()
  }

  #finish(): void {
    const reply = this.#reply
    if (reply === undefined || !this.isSettled) return
    this.#reply = undefined
    reply(this.outcome)
  }
}
