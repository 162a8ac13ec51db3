/** Readiness of a script: calls `isReady` of all its instances concurrently. */
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"
import { Effect, type Scope } from "effect"

/** `isReady` of one instance; may throw, or never return. */
export type ReadinessCheck = () => boolean | PromiseLike<boolean>

export class ScriptProbe {
  /** Two may have the same name while one takes the other's place. */
  readonly #instances = new Set<readonly [name: string, check: ReadinessCheck]>()

  /** Includes an instance until the scope closes. */
  add(name: string, check: ReadinessCheck): Effect.Effect<void, never, Scope.Scope> {
    const instance = [name, check] as const
    return Effect.acquireRelease(
      Effect.sync(() => void this.#instances.add(instance)),
      () => Effect.sync(() => void this.#instances.delete(instance)),
    )
  }

  readonly probe: Effect.Effect<boolean> = Effect.suspend(() =>
    Effect.map(
      Effect.forEach([...this.#instances], ([name, check]) => checkReadiness(name, check), {
        concurrency: "unbounded",
      }),
      (results) => results.every((isReady) => isReady),
    ),
  )
}

/** Timeout of a readiness check, as in Triton's Python backend. */
const checkTimeout = "5 seconds"

const checkReadiness = (name: string, check: ReadinessCheck): Effect.Effect<boolean> =>
  Effect.tryPromise({ try: async () => (await check()) === true, catch: errorMessage }).pipe(
    Effect.timeoutOrElse({ duration: checkTimeout, orElse: () => Effect.fail(`no response within ${checkTimeout}`) }),
    Effect.catch((problem) => Effect.as(Effect.logError(`isReady of ${name} has failed: ${problem}`), false)),
  )
