/**
 * Handles errors in model code outside of requests: errors thrown in timers or events, and rejected promises without a
 * handler. By default, Node would end the process at once, with all requests in flight.
 */
import { Effect, Layer } from "effect"

/** Logs these errors. `stop` ends the process gracefully, with a reason for the log. */
export const layer = (stop: (reason: string) => void): Layer.Layer<never> =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const fork = Effect.runForkWith(yield* Effect.context<never>())
      const onRejection = (reason: unknown) => void fork(Effect.logError("Unhandled promise rejection", reason))
      // An uncaught error leaves its work unfinished, so the process stops.
      const onException = (error: unknown) => {
        fork(Effect.logFatal("Uncaught error", error))
        stop("because an error was not caught")
      }
      yield* Effect.acquireRelease(
        Effect.sync(() => process.on("unhandledRejection", onRejection).on("uncaughtException", onException)),
        () => Effect.sync(() => process.off("unhandledRejection", onRejection).off("uncaughtException", onException)),
      )
    }),
  )
