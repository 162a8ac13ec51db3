/**
 * That a model runs as the instance of another one, in a worker thread: batches come as they are to be executed, so that it waits
 * for none of its own, and its handler is told which instance of the other one it is. Default: it is a model by itself.
 */
import { Context } from "effect"
import type { BuiltInstance } from "./InstanceContext.ts"

export const Hosting = Context.Reference<BuiltInstance | undefined>("@nereid/core/internal/instance/Hosting", {
  defaultValue: () => undefined,
})
