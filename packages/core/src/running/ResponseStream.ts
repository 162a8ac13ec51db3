/**
 * The responses of one request as a stream. The model puts them into a buffer by plain calls, and its reader takes all
 * of them at once, which costs a fraction of a Queue with an effect for each response.
 *
 *   model ─► emit ─► buffer ─► reader, in another turn of the event loop
 *              └─ full: waits until the reader has taken
 */
import { constVoid } from "effect/Function"
import { Array as Arr, Cause, Channel, Effect, Exit, type Pull, Result, type Scheduler, Scope, Stream } from "effect"
import type { InferenceError } from "../error/InferenceError.ts"
import type { Cancel, Emit, Reply, Response } from "../request/Request.ts"

/** Responses that wait for a reader; a model that is this far ahead waits too. */
const ahead = 16

/** Converts responses, and the failure of their request, for a reader. */
export interface ResponseReader<A, E> {
  readonly decode: (response: Response) => Result.Result<A, E>
  readonly failure: (failure: InferenceError) => E
}

/** Submits the request, whose responses go to `emit`. */
type Submit = (emit: Emit, reply: Reply) => Cancel

/**
 * Streams the responses of one request, which is submitted once the stream is opened. `emits`: whether the responses go
 * to `emit`, and the reply follows them; otherwise the reply is the only response. Closing the stream cancels the
 * request. The first response that cannot be decoded ends the stream.
 */
export const make = <A, E>(submit: Submit, emits: boolean, reader: ResponseReader<A, E>): Stream.Stream<A, E> =>
  Stream.fromChannel(
    Channel.fromTransform((_, scope) =>
      Effect.withFiber((fiber) => {
        const buffer = new ResponseBuffer(reader, fiber.currentDispatcher)
        const close = Effect.sync(() => buffer.close())
        const open = Effect.sync(() => {
          buffer.open(submit, emits)
          return buffer.pull
        })
        return Effect.andThen(Scope.addFinalizer(scope, close), open)
      }),
    ),
  )

/** An emit that waits for room. */
interface WaitingEmit {
  readonly response: Response
  readonly resume: (exit: Exit.Exit<void>) => void
}

class ResponseBuffer<A, E> {
  readonly #reader: ResponseReader<A, E>
  readonly #tasks: Scheduler.SchedulerDispatcher
  #responses: Array<Response> = []
  /** Emits that follow `#responses`, which is full then. */
  readonly #waiting = new Set<WaitingEmit>()
  /** Set once no response follows those that are here. */
  #end: Exit.Exit<never, E | Cause.Done> | undefined
  /** Continues the reader, which waits for responses. */
  #resume: (() => void) | undefined
  #isWaking = false
  #cancel: Cancel = constVoid

  /** `tasks` takes the turns in which the reader goes on. */
  constructor(reader: ResponseReader<A, E>, tasks: Scheduler.SchedulerDispatcher) {
    this.#reader = reader
    this.#tasks = tasks
  }

  open(submit: Submit, emits: boolean): void {
    this.#cancel = submit(this.#emit, (outcome) => {
      if (Result.isFailure(outcome)) return this.#finish(Exit.fail(this.#reader.failure(outcome.failure)))
      if (!emits) this.#responses.push(outcome.success)
      this.#finish(done)
    })
  }

  /** The reader takes nothing more. */
  close(): void {
    this.#end ??= done
    this.#responses = []
    this.#cancel()
    for (const { resume } of this.#waiting) resume(Exit.void)
    this.#waiting.clear()
  }

  /** All responses that are here, at least one. */
  readonly pull: Pull.Pull<Arr.NonEmptyReadonlyArray<A>, E> = Effect.suspend(() => {
    if (this.#responses.length > 0) return this.#take()
    return this.#end ?? this.#next
  })

  readonly #next = Effect.flatMap(
    // Without a finalizer: a fiber that was interrupted ignores what resumes it.
    Effect.callback<void>((resume) => {
      this.#resume = () => resume(Exit.void)
    }),
    () => this.pull,
  )

  readonly #emit: Emit = (response) => {
    if (this.#end !== undefined) return Exit.void
    if (this.#responses.length >= ahead) return this.#waitToEmit(response)
    this.#responses.push(response)
    this.#wake()
    return Exit.void
  }

  #waitToEmit(response: Response): Effect.Effect<void> {
    return Effect.callback((resume) => {
      const waiting: WaitingEmit = { response, resume }
      this.#waiting.add(waiting)
      return Effect.sync(() => this.#waiting.delete(waiting))
    })
  }

  #finish(end: Exit.Exit<never, E | Cause.Done>): void {
    this.#end ??= end
    if (this.#responses.length > 0) this.#wake()
    else this.#goOn()
  }

  /** Continues the reader in another turn, so that it takes all responses of this one. */
  #wake(): void {
    if (this.#resume === undefined || this.#isWaking) return
    this.#isWaking = true
    this.#tasks.scheduleTask(() => {
      this.#isWaking = false
      this.#goOn()
    }, 0)
  }

  #goOn(): void {
    const resume = this.#resume
    this.#resume = undefined
    resume?.()
  }

  #take(): Exit.Exit<Arr.NonEmptyReadonlyArray<A>, E | Cause.Done> {
    const responses = this.#responses
    const taken: Array<A> = []
    this.#responses = []
    for (const response of responses) {
      const decoded = this.#reader.decode(response)
      if (Result.isFailure(decoded)) {
        this.#end = Exit.fail(decoded.failure)
        break
      }
      taken.push(decoded.success)
    }
    this.#refill()
    return Arr.isArrayNonEmpty(taken) ? Exit.succeed(taken) : (this.#end ?? done)
  }

  /** Lets emits go on that wait for room. */
  #refill(): void {
    for (const waiting of this.#waiting) {
      if (this.#responses.length >= ahead) return
      this.#waiting.delete(waiting)
      this.#responses.push(waiting.response)
      waiting.resume(Exit.void)
    }
  }
}

const done: Exit.Exit<never, Cause.Done> = Exit.fail(Cause.Done())
