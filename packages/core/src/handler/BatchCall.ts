/** One call of a handler for all requests of a batch: how it begins, ends and is taken back, whatever the call is about. */
import { constVoid } from "effect/Function"
import { Cause, type Context, Effect, Exit, type Fiber, Result } from "effect"
import type { Batch } from "../batch/Batch.ts"
import type { HandlerEnvironment } from "../call/Caller.ts"
import type { InferenceError } from "../error/InferenceError.ts"
import { BatchScope } from "./HandledBatch.ts"
import * as Handler from "./Handler.ts"
import type { Execution, Instance } from "../instance/Instance.ts"
import type { Declared } from "../model/Declared.ts"
import type { Going, Thrown } from "./UserCode.ts"

export interface BatchCall<A, E, R, P extends Declared> {
  /** Calls the handler. What it throws itself is a defect of the instance, not the handler's. */
  readonly begin: (
    batch: Batch,
    scope: BatchScope<P>,
    fork: (effect: Effect.Effect<A, E, R>) => Fiber.Fiber<A, E>,
  ) => Exit.Exit<A, E | Thrown> | Going<A, E | Thrown>
  /** What the handler has returned, as outcomes of the requests; a failure is that of all of them. */
  readonly answer: (batch: Batch, scope: BatchScope<P>, returned: A) => Result.Result<Execution, InferenceError>
}

/** An instance's way to execute its batches by such calls. */
export const execute = <A, E, R, P extends Declared>(
  model: Handler.Failing,
  context: Context.Context<R>,
  handling: HandlerEnvironment,
  { begin, answer }: BatchCall<A, E, R, P>,
): Instance["execute"] => {
  const fork = Effect.runForkWith(handling.context)

  return (batch, settle) => {
    const scope = new BatchScope<P>(batch, handling)
    let isInterrupted = false

    const executed = (exit: Exit.Exit<A, E | Thrown>): Exit.Exit<Execution, InferenceError> => {
      if (Exit.isFailure(exit)) return failed(exit.cause)
      try {
        const answered = answer(batch, scope, exit.value)
        return Result.isSuccess(answered) ? Exit.succeed(answered.success) : Exit.fail(answered.failure)
      } catch (defect) {
        return Exit.die(defect)
      }
    }

    const failed = (cause: Cause.Cause<E | Thrown>): Exit.Exit<never, InferenceError> => {
      const { error, unexpected } = Handler.failure(model, handling.instance, cause)
      // Interruptions are the scheduler's business.
      if (unexpected === cause) return Exit.failCause(Cause.map(cause, () => error))
      if (unexpected !== undefined && !isInterrupted) fork(Handler.logUnexpected(model.name, unexpected))
      return Exit.fail(error)
    }

    const begun = begin(batch, scope, (effect) => Effect.runForkWith(scope.context(context))(effect))
    if (Exit.isExit(begun)) {
      settle(executed(begun))
      return constVoid
    }
    begun.addObserver((exit) => settle(executed(exit)))
    return (request) => {
      if (request !== undefined) return scope.leave(request)
      isInterrupted = true
      scope.cancel()
      begun.interruptUnsafe()
    }
  }
}
