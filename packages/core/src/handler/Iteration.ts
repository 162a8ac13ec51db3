/**
 * Runs over the values of an iterable as one fiber, which suspends only for a promise or an effect that is not
 * complete. A Stream of the same iterable takes several times as long for each value.
 *
 *   next() ─► value ─► use ─┬─ complete ─► next()
 *                           └─ an effect ─► runs ─► next()
 */
import { Effect, Exit } from "effect"

/**
 * Uses each value, the next one after the effect of the last has succeeded. `use` may do its work in the call itself
 * and return an Exit. Closes the iterator if it ends before its last value, and waits for that, unless the iterator has
 * not answered yet.
 */
export const forEach = <A, E, R, Failed>(
  iterable: AsyncIterable<A> | Iterable<A>,
  use: (value: A) => Effect.Effect<void, E, R>,
  onError: (error: unknown) => Failed,
): Effect.Effect<void, E | Failed, R> =>
  Effect.suspend(() => {
    const iteration = new Iteration(iterable, use, onError)
    return Effect.onExit(iteration.run, () => iteration.close())
  })

/** The same values, each as a promise. */
export const asynchronous = <A>(iterable: AsyncIterable<A> | Iterable<A>): AsyncIterable<A> =>
  Symbol.asyncIterator in iterable ? iterable : promised(iterable)

const promised = async function* <A>(iterable: Iterable<A>) {
  yield* iterable
}

/** The use of a value that is not complete; undefined after the last value. */
type Pending<E, R> = Effect.Effect<void, E, R> | undefined

class Iteration<A, E, R, Failed> {
  readonly #iterator: AsyncIterator<A>
  readonly #use: (value: A) => Effect.Effect<void, E, R>
  readonly #onError: (error: unknown) => Failed
  #isPulling = false
  /** Whether the iterator has no further value, or nobody takes it. */
  #isOver = false

  constructor(
    iterable: AsyncIterable<A> | Iterable<A>,
    use: (value: A) => Effect.Effect<void, E, R>,
    onError: (error: unknown) => Failed,
  ) {
    this.#iterator = asynchronous(iterable)[Symbol.asyncIterator]()
    this.#use = use
    this.#onError = onError
  }

  readonly #values = Effect.callback<Pending<E, R>, Failed>((resume) => void this.#pull(resume))

  readonly run: Effect.Effect<void, E | Failed, R> = Effect.flatMap(this.#values, (pending) =>
    pending === undefined ? Effect.void : Effect.flatMap(pending, () => this.run),
  )

  close(): Effect.Effect<void> {
    if (this.#isOver) return Effect.void
    this.#isOver = true
    const { return: end } = this.#iterator
    if (end === undefined) return Effect.void
    const ended = async () => void (await end.call(this.#iterator))
    return this.#isPulling ? Effect.sync(() => void ended().catch(() => {})) : Effect.promise(ended)
  }

  /** Uses values until a use is not complete. `await` allocates no further promise; `then` does. */
  async #pull(resume: (effect: Effect.Effect<Pending<E, R>, Failed>) => void): Promise<void> {
    while (true) {
      let result: IteratorResult<A>
      let isLast: boolean
      this.#isPulling = true
      try {
        result = await this.#iterator.next()
        isLast = result.done === true
      } catch (error) {
        this.#isPulling = false
        if (this.#isOver) return
        this.#isOver = true
        return resume(Effect.fail(this.#onError(error)))
      }
      this.#isPulling = false
      if (this.#isOver) return
      if (isLast) {
        this.#isOver = true
        return resume(Effect.succeed(undefined))
      }
      try {
        const used = this.#use(result.value)
        if (used === Exit.void || (Exit.isExit(used) && Exit.isSuccess(used))) continue
        return resume(Effect.succeed(used))
      } catch (defect) {
        return resume(Effect.die(defect))
      }
    }
  }
}
