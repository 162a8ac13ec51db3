/** Models of the cases about the life of a model. */
import type { RepositoryFixture } from "../../fixtures/repository.ts"
import { code, pairOf, parameter, texts } from "../PythonRepository.ts"

const floats = pairOf("FP32", "4")

/** Calls a model in finalize. */
const calling = `import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        return []

    def finalize(self):
        pb_utils.InferenceRequest(model_name="logs", inputs=[], requested_output_names=[]).exec()
`

export const lifeModels = {
  init_args: {
    file: "triton_arguments",
    config: `${texts} ${parameter("k", "v")} instance_group [{ kind: KIND_CPU }]`,
  },
  on_model: {
    file: "triton_arguments",
    config: `${texts} instance_group [{ kind: KIND_MODEL name: "g" count: 2 }]`,
  },
  apart: {
    file: "triton_apart",
    config: `${texts} instance_group { count: 2 } ${parameter("inherited_variables", "NEREID_TEST_GIVEN")}`,
  },
  single: { file: "triton_apart", config: texts },
  completed: { file: "triton_complete" },
  policy: { file: "decoupled" },
  steps: { file: "triton_steps" },
  logs: { file: "triton_life", config: floats },
  fini_error: { file: "triton_life", config: floats },
}

export const writeLifeModels = (fixture: RepositoryFixture): void => {
  process.env["NEREID_TEST_GIVEN"] = "shown"
  // The modules of the server are before it on the path.
  fixture.write("logs/1/triton_python_backend_utils.py", "raise ImportError('the copy of the model')")
  fixture.write("bare/1/model.py", code("triton_complete"))
  fixture.write("by_name/1/model.py", code("triton_identity"))
  fixture.write("calling/1/model.py", calling)
  fixture.write("calling/config.pbtxt", `backend: "python" ${floats}`)
  fixture.write("other/1/mymodel.py", code("triton_identity"))
  const pair =
    'input { name: "INPUT0" data_type: TYPE_FP32 dims: 4 } output { name: "OUTPUT0" data_type: TYPE_FP32 dims: 4 }'
  fixture.write("by_name/config.pbtxt", `default_model_filename: "model.py" ${pair}`)
  fixture.write("other/config.pbtxt", `backend: "python" default_model_filename: "mymodel.py" ${pair}`)
}
