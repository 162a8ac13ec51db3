/** A directory of a model in the cache, which several loads may hold. It never changes. */
import { Effect, Exit, Scope } from "effect"

export class ModelView {
  readonly path: string
  readonly #scope: Scope.Closeable
  readonly #onEnd: () => void
  #holders = 0

  private constructor(path: string, scope: Scope.Closeable, onEnd: () => void) {
    this.path = path
    this.#scope = scope
    this.#onEnd = onEnd
  }

  /** `onEnd`: nobody holds the view any more. */
  static make<E>(
    build: Effect.Effect<string, E, Scope.Scope>,
    onEnd: () => void,
  ): Effect.Effect<ModelView, E, Scope.Scope> {
    return Effect.uninterruptibleMask((restore) =>
      Effect.gen(function* () {
        const scope = yield* Scope.make()
        const path = yield* Effect.onError(restore(Scope.provide(build, scope)), (cause) =>
          Scope.close(scope, Exit.failCause(cause)),
        )
        const view = new ModelView(path, scope, onEnd)
        yield* view.hold
        return view
      }),
    )
  }

  /** Keeps the directory until the scope closes. */
  readonly hold: Effect.Effect<void, never, Scope.Scope> = Effect.asVoid(
    Effect.acquireRelease(
      Effect.sync(() => void (this.#holders += 1)),
      () =>
        Effect.suspend(() => {
          this.#holders -= 1
          if (this.#holders > 0) return Effect.void
          this.#onEnd()
          return Scope.close(this.#scope, Exit.void)
        }),
    ),
  )
}
