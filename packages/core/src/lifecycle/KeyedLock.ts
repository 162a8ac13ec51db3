/**
 * A lock for each name: changes of a name run one after the other, in the order of their requests. Changes may nest:
 * code in a change may begin another one, which waits for its names. If that wait could never end, a change that is not
 * nested and has not begun releases its names, and begins again once the other one has ended. If there is none, the
 * nested change is rejected. A change of several names may share them with the changes in it, which take turns.
 *
 *   change of A ─ holds A ─ its code begins ─► change of B ─ waits for B, which is held by a change that
 *                                                            ├─ waits for A and has not begun: it begins again
 *                                                            ├─ waits for A, and its code runs: rejected
 *                                                            └─ is around that of A and shares B: granted
 */
import { Context, Deferred, Effect, Exit } from "effect"
import { Unavailable } from "../error/InferenceError.ts"

/** A change in progress. Services that it builds keep it in their context, to detect when it is over. */
class Change {
  readonly parent: Change | undefined
  readonly children = new Set<Change>()
  /** For each name that it holds, the lock of the changes in it: its own, which is never free, or a shared one. */
  readonly locks = new Map<string, Lock>()
  /** The lock that the change waits for, if any. */
  awaitedLock: Lock | undefined
  hasBegun = false
  isOver = false

  constructor(parent: Change | undefined) {
    this.parent = parent
    parent?.children.add(this)
  }

  /** Whether it can release its names and begin again. */
  get canBeginAgain(): boolean {
    return this.parent === undefined && !this.hasBegun
  }

  end(): void {
    this.isOver = true
    this.parent?.children.delete(this)
  }

  /** Whether this change cannot end before the other one does. */
  dependsOn(other: Change, seen = new Set<Change>()): boolean {
    if (this === other) return true
    if (seen.has(this)) return false
    seen.add(this)
    const ahead = this.awaitedLock?.ahead(this) ?? []
    return [...this.children, ...ahead].some((next) => next.dependsOn(other, seen))
  }
}

/** The lock of one name: the change that holds it, followed by the waiting ones. */
class Lock {
  readonly name: string
  readonly #queue: Array<{ readonly change: Change; readonly acquired: Deferred.Deferred<void, Deadlock> }> = []

  constructor(name: string) {
    this.name = name
  }

  /** Those that hold it or wait for it. */
  get changes(): ReadonlyArray<Change> {
    return this.#queue.map(({ change }) => change)
  }

  /** Those that this one waits for. */
  ahead(change: Change): ReadonlyArray<Change> {
    const { changes } = this
    return changes.slice(0, changes.indexOf(change))
  }

  get isFree(): boolean {
    return this.#queue.length === 0
  }

  /** Takes a place in the queue; the result completes once the change holds the lock. */
  acquire(change: Change): Effect.Effect<void, Deadlock> {
    const acquired = Deferred.makeUnsafe<void, Deadlock>()
    this.#queue.push({ change, acquired })
    if (this.#queue.length === 1) return Effect.void
    change.awaitedLock = this
    return Deferred.await(acquired)
  }

  /** Makes a change that waits for it fail. */
  refuse(change: Change): void {
    const waiting = this.#queue.find((entry) => entry.change === change)
    if (waiting !== undefined) Deferred.doneUnsafe(waiting.acquired, Exit.fail(new Deadlock(this.name)))
  }

  /** The change holds it, or waits for it, no longer. */
  release(change: Change): void {
    const place = this.#queue.findIndex((entry) => entry.change === change)
    if (place < 0) return
    change.awaitedLock = undefined
    this.#queue.splice(place, 1)
    const [next] = this.#queue
    if (place > 0 || next === undefined) return
    next.change.awaitedLock = undefined
    Deferred.doneUnsafe(next.acquired, Effect.void)
  }
}

const Current = Context.Reference<Change | undefined>("@nereid/core/KeyedLock/Change", {
  defaultValue: () => undefined,
})

export class KeyedLock {
  readonly #locks = new Map<string, Lock>()

  /** Runs the effect while it holds all these names. */
  hold<A, E, R>(names: Iterable<string>, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | Unavailable, R> {
    return this.#hold(names, false, effect)
  }

  #hold<A, E, R>(
    names: Iterable<string>,
    isShared: boolean,
    effect: Effect.Effect<A, E, R>,
  ): Effect.Effect<A, E | Unavailable, R> {
    // Always in the same order, so that no two changes hold what the other one waits for.
    const ordered = [...new Set(names)].toSorted()
    return Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(Current, (current) => {
        const parent = current?.isOver === false ? current : undefined
        const attempt: Effect.Effect<A, E | Unavailable, R> = Effect.suspend(() => {
          const change = new Change(parent)
          const run: Effect.Effect<A, E | Deadlock, R> = Effect.suspend(() => {
            change.hasBegun = true
            return Effect.ensuring(restore(Effect.provideService(effect, Current, change)), endOfShared(change))
          })
          const held = ordered.reduceRight((inner, name) => this.#holdOne(name, change, isShared, restore, inner), run)
          return Effect.catch(
            Effect.ensuring(
              held,
              Effect.sync(() => change.end()),
            ),
            (error): Effect.Effect<A, E | Unavailable, R> => {
              if (!(error instanceof Deadlock)) return Effect.fail(error)
              if (parent !== undefined) return Effect.fail(refusal(error.name))
              // It has not begun and holds nothing now, so the change that waits for it can end.
              return Effect.andThen(this.#free(error.name, restore), attempt)
            },
          )
        })
        return attempt
      }),
    )
  }

  /**
   * Holds names for an effect that may discover that it requires more. If it returns names, all are released, and
   * acquired again together with them. It returns `undefined` when it is done. Changes of these names within the effect
   * run one after the other.
   */
  holdAll<E, R>(
    names: ReadonlySet<string>,
    effect: (held: ReadonlySet<string>) => Effect.Effect<ReadonlySet<string> | undefined, E, R>,
  ): Effect.Effect<void, E | Unavailable, R> {
    return Effect.flatMap(
      Effect.suspend(() => this.#hold(names, true, effect(names))),
      (missing) => (missing === undefined ? Effect.void : this.holdAll(names.union(missing), effect)),
    )
  }

  #holdOne<A, E, R>(
    name: string,
    change: Change,
    isShared: boolean,
    restore: Restore,
    effect: Effect.Effect<A, E | Deadlock, R>,
  ): Effect.Effect<A, E | Deadlock, R> {
    return Effect.suspend((): Effect.Effect<A, E | Deadlock, R> => {
      const lock = this.#lock(name, change)
      const dependents = lock.changes.filter((other) => other.dependsOn(change))
      const canWait = change.parent !== undefined && dependents.every(({ canBeginAgain }) => canBeginAgain)
      if (dependents.length > 0 && !canWait) return Effect.fail(new Deadlock(name))
      for (const other of dependents) other.awaitedLock?.refuse(other)
      const acquire = Effect.andThen(
        restore(lock.acquire(change)),
        Effect.sync(() => change.locks.set(name, isShared ? new Lock(name) : lock)),
      )
      return Effect.ensuring(
        Effect.andThen(acquire, effect),
        Effect.sync(() => {
          lock.release(change)
          if (lock.isFree && this.#locks.get(name) === lock) this.#locks.delete(name)
        }),
      )
    })
  }

  /** The lock of the nearest change around this one that holds the name, or of the changes that are not nested. */
  #lock(name: string, change: Change): Lock {
    for (let outer = change.parent; outer !== undefined; outer = outer.parent) {
      const lock = outer.isOver ? undefined : outer.locks.get(name)
      if (lock !== undefined) return lock
    }
    const lock = this.#locks.get(name) ?? new Lock(name)
    this.#locks.set(name, lock)
    return lock
  }

  /** Waits until the changes that hold the name now, or wait for it, have ended. */
  #free(name: string, restore: Restore): Effect.Effect<void> {
    return Effect.suspend(() => {
      const freed: Effect.Effect<void, Deadlock> = this.#holdOne(
        name,
        new Change(undefined),
        false,
        restore,
        Effect.void,
      )
      // A nested change may need its place in the queue. Its owner then asks again.
      return Effect.ignore(freed)
    })
  }
}

/** Makes a wait interruptible. */
type Restore = <E>(wait: Effect.Effect<void, E>) => Effect.Effect<void, E>

/** Completes once no change in this one holds a shared name. */
const endOfShared = (change: Change): Effect.Effect<void> =>
  Effect.suspend(() => {
    change.isOver = true
    const shared = [...change.locks.values()].filter((lock) => !lock.changes.includes(change) && !lock.isFree)
    return Effect.forEach(shared, (lock) => Effect.ignore(lock.acquire(change)), { discard: true })
  })

/** A wait for a name that could never end. */
class Deadlock {
  readonly name: string

  constructor(name: string) {
    this.name = name
  }
}

const refusal = (name: string) =>
  new Unavailable({
    message: `model '${name}' is being loaded or unloaded, and code that runs as part of a load or unload cannot wait for it`,
  })
