/**
 * What a model's own code says of whether it is ready, beside what is known of it: asked each time that a caller asks, and of no
 * other consequence. Whether a model takes requests is RunningModel's `isReady`, which is known at any time.
 */
import { Effect } from "effect"
import type { RunningModel } from "./RunningModel.ts"

export interface Probed extends RunningModel {
  /** Asks it; ends in bounded time. */
  readonly probe: Effect.Effect<boolean>
}

const isProbed = (model: RunningModel): model is Probed => "probe" in model

/** What a caller who asks whether the model is ready is told. */
export const isReady = (model: RunningModel): Effect.Effect<boolean> =>
  model.isReady() && isProbed(model) ? model.probe : Effect.sync(model.isReady)
