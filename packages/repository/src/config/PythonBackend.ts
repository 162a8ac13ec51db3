/**
 * Which models run in Python: those of the backend `python`, and those of a backend whose code is the file `model.py`
 * of its folder in the backend directory. That file serves all models that name the backend.
 */
import { join } from "node:path"
import type { ModelConfig } from "@nereid/protocol/model_config"

type Backend = Pick<ModelConfig, "backend" | "runtime">

/** The file of a backend, and the `runtime` of its models. */
export const runtime = "model.py"

/** Backends whose code is not in the backend directory; none, for an ensemble. */
const own: ReadonlySet<string> = new Set(["", "onnxruntime", "nereid", "python"])

/** Whether the backend directory may have this backend. */
export const isElsewhere = ({ backend, runtime: given }: Backend): boolean =>
  !own.has(backend) && (given === "" || given === runtime)

/** Whether the code of the model is that of its backend. The configuration has the runtime that was found. */
export const isShared = (config: Backend): boolean => isElsewhere(config) && config.runtime === runtime

/** Whether the model runs in Python processes. */
export const runsPython = (config: Backend): boolean => config.backend === "python" || isShared(config)

/** The parameter by which all instances are threads of one process. */
export const threadsParameter = "instances_in_threads"

/** Whether all instances are threads of one process, and start and end together. */
export const runsInThreads = (config: Backend & Pick<ModelConfig, "parameters">): boolean =>
  runsPython(config) && config.parameters[threadsParameter]?.stringValue.trim() === "yes"

/** An error if the name would lead out of the backend directory. */
export const nameProblem = ({ backend }: Backend): string | undefined =>
  /[/\\\0]/.test(backend) || backend === "." || backend === ".."
    ? `invalid backend name '${backend}', backend name must not contain path traversal characters`
    : undefined

/** The file of a backend in the backend directory. */
export const fileOf = (directory: string, { backend }: Backend): string => join(directory, backend, runtime)
