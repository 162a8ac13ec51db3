/** Other models that a model of a repository uses: the steps of an ensemble, or the models that a script may call. */
import type { NamedCalls } from "@nereid/core/internal/call/NamedCalls"
import type { RegisteredModels } from "@nereid/core/Registry"
import type { PythonServer } from "./PythonServer.ts"

export interface OtherModels extends Pick<RegisteredModels, "versions"> {
  /** Id of the model that has this name in the configuration of a model. */
  readonly idOf: (name: string) => string
  /** Whether the model exists with a valid configuration, loaded or not. */
  readonly isKnown: (name: string) => boolean
  /** Error of the last load of the model; undefined if it succeeded, or there was none. */
  readonly loadError: (name: string) => string | undefined
  readonly calls: NamedCalls
  /** The parts of the server for models in Python. */
  readonly python: PythonServer
}
