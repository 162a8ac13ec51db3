/**
 * Stops the server after an unrecoverable failure of a model, which only a new process can recover from. Readiness goes
 * off, and `onUnrecoverable` is called; without that option the process ends itself.
 */
import { Deferred, type Duration, Effect, Fiber, FiberSet } from "effect"
import type { Unrecoverable } from "@nereid/core/Errors"
import type { ModelStore } from "@nereid/core/internal/lifecycle/ModelStore"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"

export interface SelfStopOptions {
  readonly readinessOff: () => void
  /** Answers what is in flight, and ends the models. */
  readonly stop: Effect.Effect<void>
  /** Time limit for the process to end. */
  readonly limit: Duration.Duration
  readonly onUnrecoverable: ((error: Unrecoverable) => void) | undefined
}

/**
 * In the background, for as long as the scope is open: of all models that there are, and of those that leave until they
 * end.
 */
export const watch = Effect.fnUntraced(function* (
  store: Pick<ModelStore, "models" | "onChange">,
  { readinessOff, stop, limit, onUnrecoverable }: SelfStopOptions,
) {
  const holder = yield* Effect.withFiber((fiber) => Effect.succeed(fiber))
  const failed = Deferred.makeUnsafe<{ readonly name: string; readonly error: Unrecoverable }>()
  const watched = new Map<RunningModel, Deferred.Deferred<void>>()
  const runFork = yield* FiberSet.makeRuntime<never, void, never>()
  const watchModels = () => {
    const models = new Set(store.models)
    for (const [model, left] of watched) if (!models.has(model)) Deferred.doneUnsafe(left, Effect.void)
    for (const model of models) {
      const {
        description: { name },
        life: { drained, unrecoverable },
      } = model
      if (unrecoverable === undefined || watched.has(model)) continue
      const left = Deferred.makeUnsafe<void>()
      watched.set(model, left)
      const failure = Effect.map(
        unrecoverable,
        (error) => void Deferred.doneUnsafe(failed, Effect.succeed({ name, error })),
      )
      const end = Effect.andThen(Deferred.await(left), drained)
      runFork(
        Effect.ensuring(
          Effect.raceFirst(failure, end),
          Effect.sync(() => watched.delete(model)),
        ),
      )
    }
  }
  watchModels()
  yield* Effect.acquireRelease(
    Effect.sync(() => store.onChange(watchModels)),
    (ignore) => Effect.sync(ignore),
  )
  yield* Deferred.await(failed).pipe(
    Effect.tap(({ name, error }) => {
      readinessOff()
      return Effect.logFatal(`Stopping the server, because model '${name}' cannot recover: ${error.message}`)
    }),
    Effect.flatMap(({ error }) =>
      onUnrecoverable === undefined ? endProcess(holder, stop, limit) : Effect.sync(() => onUnrecoverable(error)),
    ),
    Effect.forkScoped,
  )
})

/**
 * Stops the process like SIGTERM, because only a signal reaches a program that waits in `Layer.launch`. The exit code
 * is `process.exitCode` with `Server.teardown`, and 130 without.
 *
 * Without a signal listener, the fiber that built the server is interrupted, if it still waits, as in a launched layer.
 * Otherwise, as in a ManagedRuntime, only the server stops.
 */
const endProcess = (
  holder: Fiber.Fiber<unknown, unknown>,
  stop: Effect.Effect<void>,
  limit: Duration.Duration,
): Effect.Effect<void> =>
  Effect.suspend(() => {
    process.exitCode = 1
    if (process.emit("SIGTERM", "SIGTERM")) return Effect.void
    const released = holder.pollUnsafe() === undefined ? Fiber.interrupt(holder) : stop
    // Detached, as it closes the scope of this fiber.
    return released.pipe(
      Effect.timeoutOption(limit),
      Effect.andThen(Effect.sync(() => process.exit(1))),
      Effect.forkDetach,
      Effect.asVoid,
    )
  })
