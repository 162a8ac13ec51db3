/**
 * Observes SIGTERM and SIGINT without handling them. A listener of a signal keeps Node from ending the process, so this
 * module listens only while the program listens too.
 */
import { Effect, type Scope } from "effect"

const signals: ReadonlyArray<NodeJS.Signals> = ["SIGTERM", "SIGINT"]

let observers = 0
let last: NodeJS.Signals | undefined

/** Returns the last signal that the program has handled, if any, while the scope is open. */
export const observe: Effect.Effect<() => NodeJS.Signals | undefined, never, Scope.Scope> = Effect.as(
  Effect.acquireRelease(
    Effect.sync(() => {
      observers += 1
      if (observers > 1) return
      last = undefined
      process.on("newListener", onAdded).on("removeListener", follow)
      follow()
    }),
    () =>
      Effect.sync(() => {
        observers -= 1
        if (observers > 0) return
        process.off("newListener", onAdded).off("removeListener", follow)
        for (const signal of signals) process.off(signal, note)
      }),
  ),
  () => last,
)

const note = (signal: NodeJS.Signals): void => {
  last = signal
}

/** The event comes before the listener is added. */
const onAdded = (event: string | symbol): void => {
  if (signals.some((signal) => signal === event)) queueMicrotask(follow)
}

/** Listens to the signals that the program listens to, before the program does. */
const follow = (): void => {
  if (observers === 0) return
  for (const signal of signals) {
    const all = process.listeners(signal)
    const others = all.filter((listener) => listener !== note).length
    if (others > 0 && others === all.length) process.prependListener(signal, note)
    if (others === 0 && all.length > 0) process.off(signal, note)
  }
}
