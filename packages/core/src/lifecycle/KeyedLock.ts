/**
 * Changes of models by name, one after the other for each name, in the order they were asked for. Code that is part of a change
 * never waits for the turn of another one, which might wait for it.
 */
import { Context, Effect, Option, Semaphore } from "effect"
import { Unavailable } from "../error/InferenceError.ts"

export interface Turns {
  /** Runs the effect once it is the turn of all these names. */
  readonly take: <A, E, R>(
    names: ReadonlyArray<string>,
    effect: Effect.Effect<A, E, R>,
  ) => Effect.Effect<A, E | Unavailable, R>
}

/** The change that code is part of. What it has built goes on with it in its context, so it tells when it is over. */
const Change = Context.Reference<{ isOver: boolean }>("@nereid/core/Turns/Change", {
  defaultValue: () => ({ isOver: true }),
})

interface Turn {
  readonly semaphore: Semaphore.Semaphore
  /** Changes that have it or wait for it. */
  users: number
}

/**
 * What becomes of a change that is part of another one: `refuse` where it is another's turn, or `pass` without one, where what it
 * changes keeps an order by itself.
 */
export const make = (inside: "refuse" | "pass" = "refuse"): Turns => {
  const turns = new Map<string, Turn>()

  const takeOne = <A, E, R>(name: string, waits: boolean, effect: Effect.Effect<A, E, R>) =>
    Effect.suspend((): Effect.Effect<A, E | Unavailable, R> => {
      const turn = turns.get(name) ?? { semaphore: Semaphore.makeUnsafe(1), users: 0 }
      turns.set(name, turn)
      turn.users += 1
      const leave = Effect.sync(() => {
        turn.users -= 1
        if (turn.users === 0) turns.delete(name)
      })
      const taken = waits ? turn.semaphore.withPermit(effect) : atOnce(turn.semaphore, name, effect)
      return Effect.ensuring(taken, leave)
    })

  return {
    take: <A, E, R>(names: ReadonlyArray<string>, effect: Effect.Effect<A, E, R>) =>
      Effect.flatMap(Change, ({ isOver }) => {
        if (!isOver && inside === "pass") return effect
        const change = { isOver: false }
        const changing: Effect.Effect<A, E | Unavailable, R> = effect.pipe(
          Effect.provideService(Change, change),
          Effect.ensuring(Effect.sync(() => (change.isOver = true))),
        )
        // Always in the same order, so that none has what another one waits for.
        return names.toSorted().reduceRight((inner, name) => takeOne(name, isOver, inner), changing)
      }),
  }
}

const atOnce = <A, E, R>(semaphore: Semaphore.Semaphore, name: string, effect: Effect.Effect<A, E, R>) =>
  Effect.flatMap(
    semaphore.withPermitsIfAvailable(1)(effect),
    Option.match({
      onNone: () => {
        const message = `model '${name}' is being changed, which code that is part of a change cannot wait for`
        return Effect.fail(new Unavailable({ message }))
      },
      onSome: Effect.succeed,
    }),
  )
