/**
 * Loads and ends versions of models, for all sources: models in code (CodeModels.ts), directories (the package
 * `repository`) and variants that requests load (Variants.ts).
 *
 *   change ─ holds the names ─┬─ load:   wanted ─► loading ─┬─► ready, and the source serves it
 *                             │                             └─► failed, and the build is released
 *                             └─ retire: draining ─► gone
 *
 * All loaded versions live in one scope. Closing the scope also ends a running change, and waits for it.
 */
import { Cause, type Duration, Effect, Exit, Fiber, Scope } from "effect"
import { Unavailable } from "../error/InferenceError.ts"
import { causeMessage } from "../error/CauseMessage.ts"
import type { KeyedLock } from "./KeyedLock.ts"
import type { RegisteredModels } from "./ModelLookup.ts"
import { BuildScope, type ModelVersion } from "./ModelVersion.ts"
import * as Retirement from "./Retirement.ts"

export class Lifecycle {
  readonly #scope: Scope.Closeable | Scope.Scope
  readonly #lock: KeyedLock

  /**
   * Loaded versions live at most as long as the scope. Changes of one name run one after the other if they share a
   * lock.
   */
  constructor(scope: Scope.Scope, lock: KeyedLock) {
    this.#scope = scope
    this.#lock = lock
  }

  /** Runs a change of these models. Interrupting the caller interrupts the change. */
  change<A, E, R>(names: Iterable<string>, change: Effect.Effect<A, E, R>): Effect.Effect<A, E | Unavailable, R> {
    return this.#runInScope(this.#lock.hold(names, change))
  }

  /** The same for a change that finds out which models it has to hold (KeyedLock.holdAll). */
  changeAll<E, R>(
    names: ReadonlySet<string>,
    change: (held: ReadonlySet<string>) => Effect.Effect<ReadonlySet<string> | undefined, E, R>,
  ): Effect.Effect<void, E | Unavailable, R> {
    return this.#runInScope(this.#lock.holdAll(names, change))
  }

  /**
   * Builds the resources of these versions in a separate scope, which ends with the last of them. A failed build is
   * released, and the versions have failed; after an interruption they are gone. The caller makes them ready, with the
   * result's scope.
   */
  load<A, E, R>(
    versions: ReadonlyArray<ModelVersion>,
    build: Effect.Effect<A, E, R>,
  ): Effect.Effect<{ readonly built: A; readonly scope: BuildScope }, E, Exclude<R, Scope.Scope>> {
    return Effect.uninterruptibleMask((restore) =>
      Effect.gen({ self: this }, function* () {
        for (const version of versions) version.begin()
        const buildScope = yield* Scope.fork(this.#scope)
        const built = yield* restore(Scope.provide(build, buildScope)).pipe(
          Effect.onError((cause) =>
            Effect.andThen(
              Scope.close(buildScope, Exit.failCause(cause)),
              Effect.sync(() => {
                const isInterrupted = Cause.hasInterruptsOnly(cause)
                for (const version of versions) {
                  if (isInterrupted) version.end()
                  else version.fail(causeMessage(cause))
                }
              }),
            ),
          ),
        )
        return { built, scope: new BuildScope(buildScope) }
      }),
    )
  }

  /**
   * Drains and ends versions that requests do not reach any more, in the background; the result completes with them.
   */
  retire(
    versions: ReadonlyArray<ModelVersion>,
    find: RegisteredModels["get"],
    drain: Duration.Input,
  ): Effect.Effect<Fiber.Fiber<void>> {
    return Effect.forkIn(Retirement.retire(versions, find, drain), this.#scope, { startImmediately: true })
  }

  /**
   * Runs the change in the scope, whose end waits for the change, so that the process does not end while native code
   * runs.
   */
  #runInScope<A, E, R>(change: Effect.Effect<A, E, R>): Effect.Effect<A, E | Unavailable, R> {
    const scope = this.#scope
    return Effect.uninterruptibleMask((restore) =>
      Effect.gen(function* () {
        const fiber = yield* Effect.forkIn(change, scope, { startImmediately: true })
        const exit = yield* Effect.onInterrupt(restore(Fiber.await(fiber)), () => Fiber.interrupt(fiber))
        const isEnded = Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause) && scope.state._tag === "Closed"
        return yield* isEnded ? new Unavailable({ message: "Server is stopping" }) : exit
      }),
    )
  }
}
