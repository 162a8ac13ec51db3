/** What the instances of a script say of their readiness: all of them, asked at the same time. */
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"
import { Effect, type Scope } from "effect"

/** Of one instance; may throw, or never answer. */
export type Ask = () => boolean | PromiseLike<boolean>

export class ScriptProbe {
  /** Two may have the same name while one takes the other's place. */
  readonly #instances = new Set<readonly [name: string, ask: Ask]>()

  /** Asks an instance, too, until the scope closes. */
  add(name: string, ask: Ask): Effect.Effect<void, never, Scope.Scope> {
    const instance = [name, ask] as const
    return Effect.acquireRelease(
      Effect.sync(() => void this.#instances.add(instance)),
      () => Effect.sync(() => void this.#instances.delete(instance)),
    )
  }

  readonly probe: Effect.Effect<boolean> = Effect.suspend(() =>
    Effect.map(
      Effect.forEach([...this.#instances], ([name, ask]) => answer(name, ask), { concurrency: "unbounded" }),
      (answers) => answers.every((isReady) => isReady),
    ),
  )
}

/** As in Triton's Python backend. */
const patience = "5 seconds"

const answer = (name: string, ask: Ask): Effect.Effect<boolean> =>
  Effect.tryPromise({ try: async () => (await ask()) === true, catch: errorMessage }).pipe(
    Effect.timeoutOrElse({ duration: patience, orElse: () => Effect.fail(`no answer within ${patience}`) }),
    Effect.catch((problem) => Effect.as(Effect.logError(`isReady of ${name} has failed: ${problem}`), false)),
  )
