/** Why a server could not start. */
import { Data } from "effect"
import type { IndexEntry } from "@nereid/core/internal/lifecycle/ModelStore"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"

/** Every model that there is, loaded or not, and those that were loaded. */
export interface ModelsFound {
  readonly index: () => ReadonlyArray<IndexEntry>
  readonly models: ReadonlyArray<RunningModel>
}

/** The server cannot start. `message` names the reason, such as a port in use or an invalid option. */
export class ServeError extends Data.TaggedError("ServeError")<{
  readonly message: string
  /** State of each model, if models of a repository failed the start. */
  readonly found?: ModelsFound
}> {}
