/** What a module is told by whoever loads it, for one that provides more models than it can know of. */
import { Context } from "effect"

/** The `data` of Worker.layer, in the thread: what its layers are built with. Undefined where there is none. */
export const WorkerData = Context.Reference<unknown>("@nereid/worker/WorkerData", { defaultValue: () => undefined })
