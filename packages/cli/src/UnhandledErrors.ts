/**
 * Handles errors in the code of models outside of requests: thrown by a timer or an event, or the rejection of a promise that is
 * never awaited. Node would end the process at once, and with it the requests of all models.
 */
import { Effect, Layer } from "effect"

/** Logs these errors. `stop` ends the process gracefully, with a reason for the log. */
export const layer = (stop: (reason: string) => void): Layer.Layer<never> =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const fork = Effect.runForkWith(yield* Effect.context<never>())
      const onRejection = (reason: unknown) =>
        void fork(Effect.logError("A promise that nobody awaits was rejected", reason))
      // An uncaught error leaves its work unfinished, so the process stops.
      const onException = (error: unknown) => {
        fork(Effect.logFatal("An error that nobody catches was thrown", error))
        stop("an error was thrown that nobody catches")
      }
      yield* Effect.acquireRelease(
        Effect.sync(() => process.on("unhandledRejection", onRejection).on("uncaughtException", onException)),
        () => Effect.sync(() => process.off("unhandledRejection", onRejection).off("uncaughtException", onException)),
      )
    }),
  )
