/**
 * The end of a server that nobody has asked to stop: a model of it has failed unrecoverably, and only a new process helps.
 * Readiness goes off, and whoever holds the server is told; that is the process itself where nobody else has taken it upon him.
 */
import { Effect, type Scope } from "effect"
import type { Unrecoverable } from "@nereid/core/Errors"
import type { RunningModel } from "@nereid/core/RunningModel"

export interface SelfStopOptions {
  readonly readinessOff: () => void
  /** Closes the front ends once their requests in flight have their answers. */
  readonly drain: Effect.Effect<void>
  readonly onUnrecoverable: ((error: Unrecoverable) => void) | undefined
}

/** In the background, for as long as the scope is open. */
export const watch = (
  models: ReadonlyArray<RunningModel>,
  { readinessOff, drain, onUnrecoverable }: SelfStopOptions,
): Effect.Effect<void, never, Scope.Scope> => {
  const failures = models.flatMap(({ name, unrecoverable }) =>
    unrecoverable === undefined ? [] : [Effect.map(unrecoverable, (error) => ({ name, error }))],
  )
  if (failures.length === 0) return Effect.void
  return Effect.raceAllFirst(failures).pipe(
    Effect.tap(({ name, error }) => {
      readinessOff()
      return Effect.logFatal(`Model '${name}' cannot recover, so the server stops: ${error.message}`)
    }),
    Effect.flatMap(({ error }) =>
      onUnrecoverable === undefined ? endProcess(drain) : Effect.sync(() => onUnrecoverable(error)),
    ),
    Effect.forkScoped,
    Effect.asVoid,
  )
}

/**
 * As SIGTERM does: nothing else reaches a program that waits in `Layer.launch`, and all that has to be done at its end listens
 * for it. The exit code is that of `process.exitCode` for `Server.teardown`, and 130 without.
 */
const endProcess = (drain: Effect.Effect<void>): Effect.Effect<void> =>
  Effect.suspend(() => {
    process.exitCode = 1
    if (process.emit("SIGTERM", "SIGTERM")) return Effect.void
    return Effect.andThen(
      drain,
      Effect.sync(() => process.exit(1)),
    )
  })
