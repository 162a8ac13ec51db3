/** The model of a scenario: its configuration, and its code for this server and for Triton's Python backend. */
import * as sequences from "../fixtures/sequences.ts"
import type { Scenario } from "./Scenario.ts"

const zeros = 'initial_state { name: "zero" data_type: TYPE_INT32 dims: 1 zero_data: true }'

/** In a file of the model's directory. */
const fromFile = 'initial_state { name: "file" data_type: TYPE_INT32 dims: 1 data_file: "first" }'

const fieldsOf = ({ behaviour, controls, initial }: Scenario): string => {
  switch (behaviour) {
    case "flags":
    case "wide":
    case "ragged":
      return sequences.startAndReady
    case "ids":
      return sequences.controls(controls?.flag, controls?.id)
    case "state":
      return sequences.state(zeros)
    case "initial":
      return sequences.state(initial === undefined ? zeros : fromFile)
    case "steps":
      return "iterative_sequence: true"
  }
}

export const configOf = (scenario: Scenario): string => {
  const { behaviour, fields = "", maxBatchSize, instances = 1, idle = 5_000_000 } = scenario
  const more = behaviour === "wide" ? wide() : behaviour === "ragged" ? wide("allow_ragged_batch: true") : undefined
  const options = { maxBatchSize, instances, idle, ...(more !== undefined && { more }) }
  return sequences.config(`${fields} ${fieldsOf(scenario)}`, options)
}

/** Tensors of any width. */
const wide = (input = "") => `
  input { name: "INPUT" data_type: TYPE_INT32 dims: -1 ${input} }
  output { name: "OUTPUT" data_type: TYPE_INT32 dims: -1 }`

/** READY * (INPUT + START) for requests of different widths. */
const ragged = `
  import { ModelScript } from "@nereid/repository"
  import { Tensor } from "@nereid/core"
  export default ModelScript.define({
    execute: (requests) => requests.map(({ inputs: { INPUT, START }, sequence }) =>
      sequence.isReady
        ? { OUTPUT: Tensor.make("INT32", INPUT.shape, INPUT.data.map((value) => value + START.data[0])) }
        : {}),
  })`

/** INPUT executions, and OUTPUT is their number. */
const steps = `
  import { ModelScript } from "@nereid/repository"
  import { Tensor } from "@nereid/core"
  const counts = new Map()
  export default ModelScript.define({
    execute: (requests) => requests.map(({ inputs: { INPUT }, sequence }) => {
      if (!sequence.isReady) return {}
      const count = sequence.isStart ? 1 : counts.get(sequence.id) + 1
      counts.set(sequence.id, count)
      if (count < INPUT.data[0]) return ModelScript.reschedule
      return { OUTPUT: Tensor.make("INT32", INPUT.shape, Int32Array.of(count)) }
    }),
  })`

type Files = Readonly<Record<string, string | Uint8Array>>

/** A file of the initial state, for the scenarios that have one. */
const initialOf = ({ initial }: Scenario): Files =>
  initial === undefined ? {} : { "m/initial_state/first": new Uint8Array(Int32Array.of(initial).buffer) }

const modelOf = ({ behaviour, maxBatchSize, controls }: Scenario): Files => {
  const batches = maxBatchSize > 0
  switch (behaviour) {
    case "flags":
      return { "m/1/model.onnx": sequences.flags(batches) }
    case "wide":
      return { "m/1/model.onnx": sequences.flags(batches, "width") }
    case "ragged":
      return { "m/1/model.ts": ragged }
    case "ids":
      return { "m/1/model.onnx": sequences.ids(batches, controls?.flag, controls?.id) }
    case "state":
    case "initial":
      return { "m/1/model.onnx": sequences.accumulator(batches) }
    case "steps":
      return { "m/1/model.ts": steps }
  }
}

/** A repository with the model `m` of the scenario. */
export const filesOf = (scenario: Scenario): Files => ({
  "m/config.pbtxt": configOf(scenario),
  ...modelOf(scenario),
  ...initialOf(scenario),
})

const pythonResult = ({ behaviour, controls }: Scenario): string => {
  switch (behaviour) {
    case "flags":
    case "wide":
    case "ragged":
      return `get("READY") * (get("INPUT") + get("START"))`
    case "ids": {
      // Flags may be booleans, which numpy does not multiply.
      const control = (name: string) => `get("${name}").astype(np.int32)`
      const number = controls?.id === "BYTES" ? `np.vectorize(int)(get("CORRID"))` : `get("CORRID").astype(np.int32)`
      return `${control("READY")} * (get("INPUT") + ${control("START")} + ${control("END")} * ${number})`
    }
    case "state":
      // The Python backend has no implicit state.
      return "self.sum(request, get)"
    case "initial":
      return `get("INPUT") + get("INPUT_STATE")`
    case "steps":
      return "self.count(request, get)"
  }
}

/** The same model for Triton. */
const pythonOf = (scenario: Scenario): string => `
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def initialize(self, args):
        self.sums = {}

    def before(self, request):
        isStart = request.flags() & pb_utils.TRITONSERVER_REQUEST_FLAG_SEQUENCE_START
        # An empty row has no sequence.
        return 0 if isStart else self.sums.get(request.correlation_id(), 0)

    def sum(self, request, get):
        self.sums[request.correlation_id()] = self.before(request) + get("INPUT")
        return self.sums[request.correlation_id()]

    def count(self, request, get):
        self.sums[request.correlation_id()] = self.before(request) + 1
        count = self.sums[request.correlation_id()]
        if count >= get("INPUT").item():
            return np.full(get("INPUT").shape, count)
        request.set_release_flags(pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
        return None

    def execute(self, requests):
        responses = []
        for request in requests:
            get = lambda name: pb_utils.get_input_tensor_by_name(request, name).as_numpy()
            result = ${pythonResult(scenario)}
            responses.append(None if result is None else pb_utils.InferenceResponse(
                [pb_utils.Tensor("OUTPUT", result.astype(np.int32))]))
        return responses
`

/** The repository for Triton. */
export const tritonFilesOf = (scenario: Scenario): Files => ({
  "m/config.pbtxt": `backend: "python"\n${configOf(scenario)}`,
  "m/1/model.py": pythonOf(scenario),
  ...initialOf(scenario),
})
