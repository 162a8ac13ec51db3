/** The downloads of a model: log lines while they take long and at their end, and how far they are. */
import { Clock, Effect, type Scope } from "effect"
import type { Transfer } from "../storage/cache/ObjectCache.ts"

export interface DownloadLog extends Transfer {
  /** Bytes that have arrived, of those that are wanted; undefined while nothing has to be downloaded. */
  readonly progress: () => string | undefined
}

/** Logs until the scope closes; then, once, what was downloaded. */
export const make = Effect.fnUntraced(function* (model: string): Effect.fn.Return<DownloadLog, never, Scope.Scope> {
  const startedAt = yield* Clock.currentTimeMillis
  let [expected, files, arrived] = [0, 0, 0]
  const speed = (millis: number) => `${size(arrived / Math.max(0.001, millis / 1000))}/s`
  /** Bytes that were damaged arrive again. */
  const present = () => Math.min(arrived, expected)
  const percent = () => `${Math.floor((100 * present()) / expected)} %`
  yield* Effect.suspend(() => {
    if (expected === 0) return Effect.void
    return Effect.flatMap(Clock.currentTimeMillis, (now) => {
      const amount = `${size(present())} of ${size(expected)} (${percent()}, ${speed(now - startedAt)})`
      return Effect.logInfo(`Model '${model}': downloaded ${amount}`)
    })
  }).pipe(Effect.delay("5 seconds"), Effect.forever, Effect.forkScoped)
  yield* Effect.addFinalizer((exit) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      if (files === 0 || exit._tag === "Failure") return Effect.void
      const seconds = ((now - startedAt) / 1000).toFixed(1)
      const amount = `${files} ${files === 1 ? "file" : "files"}, ${size(arrived)}`
      return Effect.logInfo(`Model '${model}': downloaded ${amount} in ${seconds} s (${speed(now - startedAt)})`)
    }),
  )
  return {
    begin: (bytes, count) => {
      expected += bytes
      files += count
    },
    onBytes: (count) => {
      arrived += count
    },
    progress: () => (expected === 0 ? undefined : `downloaded ${size(present())} of ${size(expected)} (${percent()})`),
  }
})

const units = ["B", "KB", "MB", "GB", "TB"]

/** In powers of 1000, with a digit after the point. */
export const size = (bytes: number): string => {
  let [value, unit] = [bytes, 0]
  for (; value >= 1000 && unit < units.length - 1; unit++) value /= 1000
  return `${unit === 0 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`
}
