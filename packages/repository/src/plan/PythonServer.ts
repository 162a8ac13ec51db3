/** The parts of the server that models in Python use: other models, their loads, and the settings of the backend. */
import type { Result } from "effect"
import type { InferenceError } from "@nereid/core/Errors"
import type { Control } from "@nereid/core/internal/lifecycle/ModelRepository"
import type { RegisteredModels } from "@nereid/core/Registry"

/** Settings for the processes of all models in Python. */
export interface PythonOptions {
  /** Maximum calls of other models at once, by each process. Default 32. */
  readonly callThreads?: number
  /**
   * Names of environment variables that all processes inherit, beside those that Python and numerical libraries read;
   * `AWS_*` stands for all with that beginning. Default none.
   */
  readonly inheritEnv?: ReadonlyArray<string>
  /**
   * Directory of backends: a model whose configuration has `backend: "NAME"` is run by the file `NAME/model.py` in it.
   * Default: none.
   */
  readonly backendDirectory?: string
}

export interface PythonServer {
  readonly options: PythonOptions
  readonly models: Pick<RegisteredModels, "get" | "absent">
  /** Loads and unloads models; an error unless clients control the loads. */
  readonly control: () => Result.Result<Control, InferenceError>
}
