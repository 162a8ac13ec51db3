/** Data that a thread's module receives from `Worker.layer`, for modules whose models depend on it. */
import { Context } from "effect"

/** The `data` of Worker.layer, in the thread: what its layers are built with. Undefined where there is none. */
export const WorkerData = Context.Reference<unknown>("@nereid/worker/WorkerData", { defaultValue: () => undefined })
