/**
 * Prints what a server serves once it is ready, and its stop, to stdout, and to the log file if there is one. A server
 * without the option `announce` prints nothing. A log on stderr does not repeat it, as both are often one terminal.
 */
import { Clock, Console, Duration, Effect, type Scope } from "effect"
import * as MonotonicTime from "@nereid/core/internal/request/MonotonicTime"
import type { ModelsFound } from "../error/ServeError.ts"
import { modelTable } from "./ModelTable.ts"
import { observe } from "./SignalObserver.ts"
import { type StartedServer, startSummary, startText } from "./StartText.ts"
import { StopReason } from "./StopReason.ts"

export interface Announcement {
  readonly started: (server: StartedServer) => Effect.Effect<void>
  /** Prints the state of every model after a failed start, because the error names only those that failed. */
  readonly failed: (found: ModelsFound) => Effect.Effect<void>
  /** Prints why the server will stop, and how long it still answers. */
  readonly leaving: (delay: Duration.Duration, reason?: string) => Effect.Effect<void>
  /** Prints why the server stops. `reason` takes precedence over a signal. */
  readonly stopping: (drain: Drain, reason?: string) => Effect.Effect<void>
}

/** Requests that a stop finds. */
interface Drain {
  /** Returns the number of requests in flight. */
  readonly inFlight: () => number
  readonly limit: Duration.Duration
}

/** Announces the end of the stop when the scope closes. `hasLogFile`: whether the log goes to a file. */
export const make = Effect.fnUntraced(function* (
  hasLogFile: boolean,
): Effect.fn.Return<Announcement, never, Scope.Scope> {
  const console = yield* Console.Console
  /** Prints a text, and logs its lines, or those of `summary`. */
  const print = (text: string, summary = text) =>
    Effect.suspend(() => {
      console.log(text)
      const lines = hasLogFile ? summary.split("\n").filter((line) => line !== "") : []
      return Effect.forEach(lines, (line) => Effect.logInfo(line), { discard: true })
    })
  const reasonOf = yield* StopReason
  let isStarted = false
  let stop: { readonly at: number; readonly requests: number; readonly inFlight: () => number } | undefined
  yield* Effect.addFinalizer(() =>
    Effect.flatMap(Effect.map(Clock.Clock, MonotonicTime.millis), (now) =>
      stop === undefined ? Effect.void : print(stoppedText(now - stop.at, stop.requests, stop.inFlight())),
    ),
  )
  const signal = yield* observe
  const why = (reason: string | undefined) => {
    const received = signal()
    return reasonOf() ?? reason ?? (received === undefined ? undefined : `on ${received}`)
  }
  return {
    started: (server) =>
      Effect.suspend(() => {
        isStarted = true
        return print(startText(server), startSummary(server))
      }),
    failed: (found) => Effect.suspend(() => print(`${modelTable(found)}\n`)),
    leaving: (delay, reason) => Effect.suspend(() => print(leavingText(why(reason), delay))),
    stopping: ({ inFlight, limit }, reason) =>
      Effect.flatMap(Effect.map(Clock.Clock, MonotonicTime.millis), (at) => {
        if (stop !== undefined) return Effect.void
        const because = why(reason)
        // A start that fails has an error, which says enough.
        if (!isStarted && because === undefined) return Effect.void
        const requests = inFlight()
        stop = { at, requests, inFlight }
        return print(stoppingText(because, requests, limit))
      }),
  }
})

/** The announcement of a server that prints nothing. */
export const silent: Announcement = {
  started: () => Effect.void,
  failed: () => Effect.void,
  leaving: () => Effect.void,
  stopping: () => Effect.void,
}

const leavingText = (reason: string | undefined, delay: Duration.Duration): string => {
  const leaving = reason === undefined ? "Not ready any more" : `Not ready any more, ${reason}`
  return `${leaving}: answering requests for ${Duration.toSeconds(delay)} s`
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
