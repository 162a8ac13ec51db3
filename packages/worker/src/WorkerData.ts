/** Data that a thread's module receives from `Worker.layer`, for modules whose models depend on it. */
import { Context } from "effect"

/** The `data` option of `Worker.layer`, in its threads. Undefined elsewhere. */
export const WorkerData = Context.Reference<unknown>("@nereid/worker/WorkerData", { defaultValue: () => undefined })
