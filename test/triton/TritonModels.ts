/**
 * The models of the conformance cases for Triton's Python backend. They answer as those of conformance/Models.ts do, so
 * that one case runs against both. Cases of other models do not run here: models that hold requests, ONNX files, labels
 * and texts of our own declarations, and BF16, which numpy does not have.
 */
import { mkdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { datatypes } from "../conformance/Elements.ts"

interface TritonModel {
  readonly name: string
  readonly config: string
  /** Lines of `execute` that set `outputs`, a list of tensors, for each `request`. */
  readonly code?: string
  readonly decoupled?: string
  readonly versions?: ReadonlyArray<number>
}

const type = (datatype: string) => `TYPE_${datatype === "BYTES" ? "STRING" : datatype}`

const io = (kind: "input" | "output", name: string, datatype: string, dims: string, more = "") =>
  `${kind} { name: "${name}" data_type: ${type(datatype)} dims: ${dims} ${more} }\n`

const both = (name: string, datatype: string, dims: string, more = "") =>
  io("input", name, datatype, dims, more) + io("output", name, datatype, dims)

const echoes = datatypes
  .filter((datatype) => datatype !== "BF16")
  .flatMap((datatype): ReadonlyArray<TritonModel> => [
    { name: `batched_${datatype.toLowerCase()}`, config: `max_batch_size: 8\n${both("X", datatype, "-1")}` },
    { name: `single_${datatype.toLowerCase()}`, config: both("X", datatype, "-1") },
  ])

const addSub = (names: readonly [string, string, string, string], datatype: string, dims: number, rows: number) => {
  const [a, b, sum, difference] = names
  return {
    config:
      `max_batch_size: ${rows}\n` +
      [a, b].map((name) => io("input", name, datatype, String(dims))).join("") +
      [sum, difference].map((name) => io("output", name, datatype, String(dims))).join(""),
    code: `a, b = get(request, "${a}"), get(request, "${b}")
outputs = [pb_utils.Tensor("${sum}", a + b), pb_utils.Tensor("${difference}", a - b)]`,
  }
}

const models: ReadonlyArray<TritonModel> = [
  ...echoes,
  { name: "simple", ...addSub(["INPUT0", "INPUT1", "OUTPUT0", "OUTPUT1"], "INT32", 16, 8) },
  { name: "onnx_simple", ...addSub(["A", "B", "SUM", "DIFFERENCE"], "FP32", 2, 4) },
  { name: "matrix", config: both("X", "FP32", "[ -1, -1 ]") },
  { name: "pair", config: both("X", "BYTES", "2") },
  {
    name: "versions",
    config: `version_policy { all {} }\n${io("input", "X", "INT32", "1")}${io("output", "VERSION", "INT32", "1")}`,
    code: `outputs = [pb_utils.Tensor("VERSION", np.array([int(self.version)], np.int32))]`,
    versions: [1, 3],
  },
  {
    name: "counts",
    config: `model_transaction_policy { decoupled: true }\n${io("input", "X", "INT32", "1")}${io("output", "Y", "INT32", "1")}`,
    decoupled: `to = int(get(request, "X")[0])
for number in range(1, abs(to) + 1):
    sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("Y", np.array([number], np.int32))]))
if to < 0:
    sender.send(pb_utils.InferenceResponse(error=pb_utils.TritonError("no way down", pb_utils.TritonError.INVALID_ARG)))`,
  },
  {
    name: "apart",
    config: `max_batch_size: 4 model_transaction_policy { decoupled: true }\n${io("input", "X", "INT32", "1")}${io("output", "Y", "INT32", "1")}`,
    decoupled: `x = get(request, "X")
for rows in [x, *x[:, None]]:
    sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("Y", rows)]))`,
  },
]

/** Names of the models that run on both. */
export const names: ReadonlySet<string> = new Set(models.map(({ name }) => name))

const indented = (text: string) => text.replaceAll(/^/gm, " ".repeat(12))

const echo = `outputs = [pb_utils.Tensor("X", get(request, "X"))]`

const program = ({ code = echo, decoupled }: TritonModel) => `import numpy as np
import triton_python_backend_utils as pb_utils

def get(request, name):
    return pb_utils.get_input_tensor_by_name(request, name).as_numpy()

class TritonPythonModel:
    def initialize(self, args):
        self.version = args["model_version"]

    def execute(self, requests):
        responses = []
        for request in requests:
${
  decoupled === undefined
    ? `${indented(code)}\n${indented("responses.append(pb_utils.InferenceResponse(outputs))")}\n        return responses`
    : `${indented("sender = request.get_response_sender()")}\n${indented(decoupled)}\n${indented(
        "sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)",
      )}\n        return None`
}
`

/** Writes the repository. */
export const write = (directory: string): void => {
  for (const model of models) {
    const put = (path: string, text: string) => {
      const file = join(directory, model.name, path)
      mkdirSync(dirname(file), { recursive: true })
      writeFileSync(file, text)
    }
    put("config.pbtxt", `backend: "python"\n${model.config}`)
    for (const version of model.versions ?? [1]) put(`${version}/model.py`, program(model))
  }
}
