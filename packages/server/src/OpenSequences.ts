/** The sequences that a stop finds, in Triton's words. */
import { Effect } from "effect"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"

/** Logs the models that have sequences, with their numbers. Those without a slot do not count. */
export const log = (models: ReadonlyArray<RunningModel>): Effect.Effect<void> =>
  Effect.forEach(
    models,
    ({ description: { name, version }, life }) => {
      const live = life.activity().sequences?.live ?? 0
      return live === 0
        ? Effect.void
        : Effect.logInfo(`Model '${name}' (version ${version}) has ${live} in-flight inferences`)
    },
    { discard: true },
  )
