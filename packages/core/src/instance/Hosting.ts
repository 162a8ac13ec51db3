/**
 * The instance that a model runs as, in a worker thread. The main thread makes the batches, so the model does not queue
 * requests, and its handler gets this instance as its InstanceContext. Default: the model is not hosted.
 */
import { Context } from "effect"
import type { BuiltInstance } from "./InstanceContext.ts"

export const Hosting = Context.Reference<BuiltInstance | undefined>("@nereid/core/internal/instance/Hosting", {
  defaultValue: () => undefined,
})
