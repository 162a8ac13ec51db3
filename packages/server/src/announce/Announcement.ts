/**
 * Prints what a server serves once it is ready, and its stop, to stdout. A server without the option `announce` prints
 * nothing; its log is separate.
 */
import { Clock, Console, Duration, Effect, type Scope } from "effect"
import * as MonotonicTime from "@nereid/core/internal/request/MonotonicTime"
import type { ModelsFound } from "../error/ServeError.ts"
import { modelTable } from "./ModelTable.ts"
import { observe } from "./SignalObserver.ts"
import { type StartedServer, startText } from "./StartText.ts"
import { StopReason } from "./StopReason.ts"

export interface Announcement {
  readonly started: (server: StartedServer) => Effect.Effect<void>
  /** Prints the state of every model after a failed start, because the error names only those that failed. */
  readonly failed: (found: ModelsFound) => Effect.Effect<void>
  /** Prints why the server stops. `reason` takes precedence over a signal. */
  readonly stopping: (drain: Drain, reason?: string) => Effect.Effect<void>
}

/** Requests that a stop finds. */
interface Drain {
  /** Returns the number of requests in flight. */
  readonly inFlight: () => number
  readonly limit: Duration.Duration
}

/** Announces the end of the stop when the scope closes. */
export const make: Effect.Effect<Announcement, never, Scope.Scope> = Effect.gen(function* () {
  const console = yield* Console.Console
  const reasonOf = yield* StopReason
  let isStarted = false
  let stop: { readonly at: number; readonly requests: number; readonly inFlight: () => number } | undefined
  yield* Effect.addFinalizer(() =>
    Effect.map(Effect.map(Clock.Clock, MonotonicTime.millis), (now) => {
      if (stop !== undefined) console.log(stoppedText(now - stop.at, stop.requests, stop.inFlight()))
    }),
  )
  const signal = yield* observe
  return {
    started: (server) =>
      Effect.sync(() => {
        isStarted = true
        console.log(startText(server))
      }),
    failed: (found) => Effect.sync(() => console.log(`${modelTable(found)}\n`)),
    stopping: ({ inFlight, limit }, reason) =>
      Effect.map(Effect.map(Clock.Clock, MonotonicTime.millis), (at) => {
        if (stop !== undefined) return
        const received = signal()
        const why = reasonOf() ?? reason ?? (received === undefined ? undefined : `on ${received}`)
        // A start that fails has an error, which says enough.
        if (!isStarted && why === undefined) return
        const requests = inFlight()
        stop = { at, requests, inFlight }
        console.log(stoppingText(why, requests, limit))
      }),
  }
})

/** The announcement of a server that prints nothing. */
export const silent: Announcement = {
  started: () => Effect.void,
  failed: () => Effect.void,
  stopping: () => Effect.void,
}

const stoppingText = (reason: string | undefined, requests: number, limit: Duration.Duration): string => {
  const stopping = reason === undefined ? "Stopping" : `Stopping ${reason}`
  if (requests === 0) return stopping
  return `${stopping}: ${count(requests)} in flight may take ${Duration.toSeconds(limit)} s more`
}

const stoppedText = (millis: number, requests: number, left: number): string => {
  const answered = requests > left ? [`${count(requests - left)} answered`] : []
  const cutOff = left > 0 ? [`${count(left)} cut off`] : []
  const outcome = [...answered, ...cutOff].join(", ")
  return `Stopped in ${Math.round(millis)} ms${outcome === "" ? "" : `: ${outcome}`}`
}

const count = (requests: number): string => `${requests} ${requests === 1 ? "request" : "requests"}`
