/** Models that do not load: the index of both transports has the reasons. */
import { expect } from "vitest"
import type { CaseGroup } from "../PythonCase.ts"
import { reason } from "./LoadReason.ts"
import { numbers, pairOf, parameter, texts } from "../PythonRepository.ts"

const floats = pairOf("FP32", "4")
const life = (config: string) => ({ file: "triton_life", config: `${floats} ${config}` })

const call = `import triton_python_backend_utils as pb_utils
import numpy as np

def call():
    tensor = pb_utils.Tensor("INPUT0", np.zeros([1], dtype=np.float32))
    request = pb_utils.InferenceRequest(model_name="good", inputs=[tensor], requested_output_names=[])
    return request.exec()

class TritonPythonModel:
`
const onlyInExecute = "BLS is only supported during the 'execute' function."

export const loads: CaseGroup = {
  name: "models in Python that do not load",
  models: {
    good: { file: "triton_life", config: floats },
    complete_error: { file: "triton_complete" },
    complete_nothing: { file: "triton_complete" },
    complete_wrong: { file: "triton_complete" },
    complete_batch: { file: "triton_complete", config: "max_batch_size: 8" },
    complete_type: { file: "triton_complete", config: 'input { name: "IN" data_type: TYPE_INT32 dims: 4 }' },
    init_error: life(""),
    init_exit: life(""),
    init_import: life(""),
    flagged: life(parameter("FORCE_CPU_ONLY_INPUT_TENSORS", "no")),
    wrong_flag: life(parameter("FORCE_CPU_ONLY_INPUT_TENSORS", "maybe")),
    no_environment: life(parameter("EXECUTION_ENV_PATH", "/no/such/path")),
    relative_environment: life(parameter("EXECUTION_ENV_PATH", "below/env")),
    empty_environment: life(parameter("EXECUTION_ENV_PATH", "$$TRITON_MODEL_DIRECTORY")),
    wrong_limit: life(parameter("execute_timeout_seconds", "0")),
    wrong_number: life(parameter("concurrent_executions", "0")),
    "a;b": life(""),
  },
  files: (fixture) => {
    const write = (name: string, file: string, content: string, config = floats) => {
      fixture.write(`${name}/1/${file}`, content)
      fixture.write(`${name}/config.pbtxt`, `backend: "python" ${config}`)
    }
    fixture.write("relative_environment/below/env/bin/activate", "")
    write("missing", ".keep", "")
    write("text", "model.txt", "", `default_model_filename: "model.txt" ${floats}`)
    write("outside", "model.py", "", `default_model_filename: "../../x.py" ${floats}`)
    write("no_class", "model.py", "class Model: pass")
    write("bls_init", "model.py", `${call}    def initialize(self, args):\n        call()`, texts)
    const completing = "    @staticmethod\n    def auto_complete_config(config):\n        call()\n        return config"
    write("bls_complete", "model.py", call + completing, texts)
  },
  cases: [
    {
      name: "the others are ready, and a flag about GPUs has no effect",
      proves: ["P4.cpu-only", "P2.ready.absent"],
      run: async ({ client }) => {
        expect([await client.isReady("good"), await client.isReady("init_error")]).toEqual([true, false])
        const { outputs } = await client.infer("flagged", [numbers("IN", "FP32", [4], [1, 2, 3, 4])])
        expect(outputs?.[0]?.data).toEqual([1, 2, 3, 4])
      },
    },
    reason(
      "an exception of auto_complete_config",
      "complete_error",
      "name 'undefined_variable' is not defined",
      "P2.complete.raise",
    ),
    reason(
      "no result of auto_complete_config",
      "complete_nothing",
      "auto_complete_config function in model 'complete_nothing' must return a valid pb.ModelConfig object.",
      "P2.complete.return",
    ),
    reason("a wrong result of it", "complete_wrong", "model input 'OTHER' dimension must be integer >= 1, or -1"),
    reason(
      "a smaller batch size than configured",
      "complete_batch",
      "configuration specified max_batch_size 8, but in auto-complete-config function for model 'complete_batch' specified max_batch_size 4",
      "P3.config.batch",
    ),
    reason(
      "another datatype than configured",
      "complete_type",
      "unable to load model 'complete_type', configuration expects datatype TYPE_INT32 for input 'IN', model provides TYPE_FP32",
      "P3.config.datatype",
    ),
    reason("a call in auto_complete_config", "bls_complete", onlyInExecute, "P2.complete.calls", "P6.phase"),
    reason("a call in initialize", "bls_init", onlyInExecute, "P2.initialize.calls"),
    reason("an exception of initialize", "init_error", "name 'lorem_ipsum' is not defined", "P2.initialize.raise"),
    reason("death in initialize", "init_exit", "Stub process 'init_exit_0' is not healthy.", "P2.initialize.killed"),
    reason("a missing package", "init_import", /No module named 'no_such_package'[^]*-m pip install no_such_package/),
    reason("no class TritonPythonModel", "no_class", "TritonPythonModel", "P1.file.class"),
    reason(
      "a wrong flag about GPUs",
      "wrong_flag",
      "Incorrect value for FORCE_CPU_ONLY_INPUT_TENSORS: maybe'",
      "P4.cpu-only.wrong",
    ),
    reason(
      "an environment that is not there",
      "no_environment",
      "Failed to get the canonical path for /no/such/path.",
      "P4.env.absent",
    ),
    reason(
      "an environment by a relative path, although it is below the model",
      "relative_environment",
      "Failed to get the canonical path for below/env.",
      "P4.env.relative",
    ),
    reason(
      "an environment without activate, in the directory of the model",
      "empty_environment",
      "Path PATH/empty_environment/bin/activate does not exist. The Python environment should contain an 'activate' script.",
      "P4.env.activate",
    ),
    reason(
      "a limit of 0 seconds",
      "wrong_limit",
      "parameter 'execute_timeout_seconds' must be an integer from 1 to 86400, but '0' was given",
    ),
    reason(
      "no executions at the same time",
      "wrong_number",
      "parameter 'concurrent_executions' must be an integer from 1 to 1024, but '0' was given",
    ),
    reason("a name for a shell", "a;b", "the name 'a;b' of a model in Python must not contain the character ;"),
    reason(
      "no file",
      "missing",
      "Failed to preinitialize Python stub: Python model file not found in 'PATH/missing/1/model.py'",
      "P1.file.missing",
    ),
    reason("a file of another kind", "text", "must end in .py", "P1.file.suffix"),
    reason("a file outside of the version", "outside", "is not below"),
    {
      name: "the log has what failed",
      proves: ["P2.complete.log", "P2.initialize.log"],
      run: async ({ log }) => {
        expect(log()).toContain("Failed to initialize Python stub for auto-complete: ")
        expect(log()).toContain("Failed to initialize Python stub: ")
      },
    },
  ],
}
