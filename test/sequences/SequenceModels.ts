/** The model of a scenario: its configuration, and its code for this server and for Triton's Python backend. */
import * as sequences from "../fixtures/sequences.ts"
import type { Behaviour, Scenario } from "./Scenario.ts"

const fieldsOf: { readonly [B in Behaviour]: string } = {
  flags: sequences.startAndReady,
  ids: sequences.allControls,
  state: sequences.state('initial_state { name: "zero" data_type: TYPE_INT32 dims: 1 zero_data: true }'),
}

export const configOf = ({ behaviour, fields = "", maxBatchSize, instances = 1, idle = 5_000_000 }: Scenario): string =>
  sequences.config(`${fields} ${fieldsOf[behaviour]}`, { maxBatchSize, instances, idle })

/** The ONNX file of the model. */
export const onnxOf = ({ behaviour, maxBatchSize }: Scenario): Uint8Array => {
  const batches = maxBatchSize > 0
  return { flags: sequences.flags, ids: sequences.ids, state: sequences.accumulator }[behaviour](batches)
}

const sums: { readonly [B in Behaviour]: string } = {
  flags: `get("READY") * (get("INPUT") + get("START"))`,
  ids: `(get("READY") * (get("INPUT") + get("START") + get("END") * get("CORRID").astype(np.int32)))`,
  // The Python backend has no implicit state.
  state: "self.sum(request, get)",
}

/** The same model for Triton. */
export const pythonOf = ({ behaviour }: Scenario): string => `
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def initialize(self, args):
        self.sums = {}

    def sum(self, request, get):
        flags = request.flags()
        start = 0 if flags & pb_utils.TRITONSERVER_REQUEST_FLAG_SEQUENCE_START else self.sums[request.correlation_id()]
        self.sums[request.correlation_id()] = start + get("INPUT")
        return self.sums[request.correlation_id()]

    def execute(self, requests):
        responses = []
        for request in requests:
            get = lambda name: pb_utils.get_input_tensor_by_name(request, name).as_numpy()
            result = ${sums[behaviour]}
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT", result.astype(np.int32))]))
        return responses
`
