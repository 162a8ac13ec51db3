/** Models that call each other. */
import { addSub } from "../../fixtures/onnx.ts"
import type { RepositoryFixture } from "../../fixtures/repository.ts"
import { decoupled, doubling, pairOf, texts } from "../PythonRepository.ts"

const script = `export default { execute: (requests) => requests.map(({ inputs: { X } }) => ({
  Y: new X.constructor("FP32", X.shape, new Uint8Array(Float32Array.from(X.data, (x) => x * 3).buffer)),
})) }`

const seen = `import json
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            seen = [request.request_id(), request.correlation_id(), request.flags(), request.timeout(), json.loads(request.parameters())]
            out = pb_utils.Tensor("OUT", np.array([json.dumps(seen)], dtype=np.object_))
            responses.append(pb_utils.InferenceResponse([out], parameters={"p": 1, "q": True, "r": "s"}))
        return responses
`

const numbered =
  'input { name: "INPUT0" data_type: TYPE_FP32 dims: 1 } output { name: "OUTPUT0" data_type: TYPE_FP32 dims: 1 }'

export const callModels = {
  bls: { file: "triton_sync", config: texts },
  bls_async: { file: "triton_text", config: texts },
  count: { file: "triton_count", config: `${pairOf("INT32")} ${decoupled}` },
  identity: {
    file: "triton_identity",
    config:
      'input { name: "INPUT0" data_type: TYPE_FP32 dims: -1 } output { name: "OUTPUT0" data_type: TYPE_FP32 dims: -1 }',
  },
  cached: { file: "triton_identity", config: `${numbered} response_cache { enable: true }` },
  running: { file: "triton_running", config: `${pairOf("INT32")} sequence_batching { }` },
  codes: { file: "triton_codes", config: texts },
  recursive: { file: "triton_sync", config: `${texts} instance_group { count: 3 }` },
  called: { file: "triton_sync", config: texts },
}

export const writeCallModels = (fixture: RepositoryFixture): void => {
  fixture.write("add_sub/1/model.onnx", addSub("FP32", ["n", 4]))
  fixture.write("add_sub/config.pbtxt", "max_batch_size: 8 dynamic_batching {}")
  fixture.write("double/1/.keep", "")
  fixture.write("double/config.pbtxt", doubling)
  fixture.write("batched/1/model.onnx", addSub("FP32", ["n", 4]))
  const batching = "dynamic_batching { preferred_batch_size: 8 max_queue_delay_microseconds: 20000000 }"
  fixture.write("batched/config.pbtxt", `max_batch_size: 8 ${batching}`)
  fixture.write("triple/1/model.js", script)
  fixture.write(
    "triple/config.pbtxt",
    'max_batch_size: 4 input { name: "X" data_type: TYPE_FP32 dims: 1 } output { name: "Y" data_type: TYPE_FP32 dims: 1 }',
  )
  fixture.write("seen/1/model.py", seen)
  fixture.write("seen/config.pbtxt", `backend: "python" output { name: "OUT" data_type: TYPE_STRING dims: 1 }`)
}
