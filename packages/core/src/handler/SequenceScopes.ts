/** The scopes of the sequences of a model whose handlers hold resources. Each one closes when its sequence is over. */
import { Effect, Exit, Scope } from "effect"
import type { SequenceEnd } from "../request/SequencePosition.ts"

export class SequenceScopes {
  /** Runs a close, which logs its failures. */
  readonly #fork: (close: Effect.Effect<void>) => void
  readonly #open = new Set<SequenceScope>()

  constructor(fork: (close: Effect.Effect<void>) => void) {
    this.#fork = fork
  }

  make(): SequenceScope {
    const scope: SequenceScope = new SequenceScope((closing) => {
      this.#fork(
        Effect.ensuring(
          closing,
          Effect.sync(() => this.#open.delete(scope)),
        ),
      )
    })
    this.#open.add(scope)
    return scope
  }

  /** Closes those that are open, and waits for all. */
  get close(): Effect.Effect<void> {
    return Effect.suspend(() =>
      Effect.forEach(this.#open, (scope) => scope.closed("stopped"), { concurrency: "unbounded", discard: true }),
    )
  }
}

export class SequenceScope {
  readonly scope = Scope.makeUnsafe()
  readonly #fork: (closing: Effect.Effect<void>) => void
  #reason: SequenceEnd | undefined

  constructor(fork: (closing: Effect.Effect<void>) => void) {
    this.#fork = fork
  }

  /** Why the sequence is over; undefined while it lives. */
  get reason(): SequenceEnd | undefined {
    return this.#reason
  }

  end(reason: SequenceEnd): void {
    this.#fork(this.closed(reason))
  }

  /** Closes the scope, once. Failures of finalizers are logged. */
  closed(reason: SequenceEnd): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.#reason ??= reason
      return Effect.catchCause(Scope.close(this.scope, Exit.succeed(this.#reason)), (cause) =>
        Effect.logError("The resources of a sequence failed while they were released", cause),
      )
    })
  }
}
