/** One call of a handler for all requests of a batch: its start, end and cancellation. */
import { constVoid } from "effect/Function"
import { Cause, type Context, Effect, Exit, type Fiber, Result } from "effect"
import type { Batch } from "../batch/Batch.ts"
import type { HandlerEnvironment } from "../call/Caller.ts"
import type { InferenceError } from "../error/InferenceError.ts"
import { BatchScope } from "./HandledBatch.ts"
import * as Handler from "./Handler.ts"
import type { ExecutionResult, Instance } from "../instance/Instance.ts"
import type { Declared } from "../model/Declared.ts"
import type { RunningCall, ThrownError } from "./UserCode.ts"

export interface BatchCall<A, E, R, P extends Declared> {
  /** Calls the handler. What it throws itself is a defect of the instance, not the handler's. */
  readonly begin: (
    batch: Batch,
    scope: BatchScope<P>,
    fork: (effect: Effect.Effect<A, E, R>) => Fiber.Fiber<A, E>,
  ) => Exit.Exit<A, E | ThrownError> | RunningCall<A, E | ThrownError>
  /** Turns the handler's result into outcomes of the requests; a failure is that of all of them. */
  readonly complete: (batch: Batch, scope: BatchScope<P>, returned: A) => Result.Result<ExecutionResult, InferenceError>
}

/** An instance's way to execute its batches by such calls. */
export const execute = <A, E, R, P extends Declared>(
  model: Handler.ModelErrors,
  context: Context.Context<R>,
  handling: HandlerEnvironment,
  { begin, complete }: BatchCall<A, E, R, P>,
): Instance["execute"] => {
  const fork = Effect.runForkWith(handling.context)

  return (batch, settle) => {
    const scope = new BatchScope<P>(batch, handling)
    let isInterrupted = false

    const executed = (exit: Exit.Exit<A, E | ThrownError>): Exit.Exit<ExecutionResult, InferenceError> => {
      if (Exit.isFailure(exit)) return failed(exit.cause)
      try {
        const result = complete(batch, scope, exit.value)
        return Result.isSuccess(result) ? Exit.succeed(result.success) : Exit.fail(result.failure)
      } catch (defect) {
        return Exit.die(defect)
      }
    }

    const failed = (cause: Cause.Cause<E | ThrownError>): Exit.Exit<never, InferenceError> => {
      const { error, unexpected } = Handler.failure(model, handling.instance, cause)
      // The scheduler handles interruptions.
      if (unexpected === cause) return Exit.failCause(Cause.map(cause, () => error))
      if (unexpected !== undefined && !isInterrupted) fork(Handler.logUnexpected(model.name, unexpected))
      return Exit.fail(error)
    }

    const call = begin(batch, scope, (effect) => Effect.runForkWith(scope.context(context))(effect))
    if (Exit.isExit(call)) {
      settle(executed(call))
      return constVoid
    }
    call.addObserver((exit) => settle(executed(exit)))
    return (request) => {
      if (request !== undefined) return scope.cancelRequest(request)
      isInterrupted = true
      scope.cancel()
      call.interruptUnsafe()
    }
  }
}
