/**
 * The models of the conformance cases for Triton's Python backend. They answer as those of conformance/Models.ts do, so
 * that one case runs against both. TritonStoredModels.ts has those of the repository.
 */
import { codes } from "../conformance/Codes.ts"
import { datatypes } from "../conformance/Elements.ts"
import { failure } from "../conformance/Models.ts"
import * as PythonModel from "./PythonModel.ts"

const type = (datatype: string) => `TYPE_${datatype === "BYTES" ? "STRING" : datatype}`

const io = (kind: "input" | "output", name: string, datatype: string, dims: string, more = "") =>
  `${kind} { name: "${name}" data_type: ${type(datatype)} dims: ${dims} ${more} }\n`

const both = (name: string, datatype: string, dims: string, more = "") =>
  io("input", name, datatype, dims, more) + io("output", name, datatype, dims)

/** numpy has no BF16: the tensor itself is the output. */
const same = `outputs = [pb_utils.get_input_tensor_by_name(request, "X")]`

const echoes = datatypes.flatMap((datatype): ReadonlyArray<PythonModel.PythonModel> => {
  const code = datatype === "BF16" ? { code: same } : {}
  return [
    { name: `batched_${datatype.toLowerCase()}`, config: `max_batch_size: 8\n${both("X", datatype, "-1")}`, ...code },
    { name: `single_${datatype.toLowerCase()}`, config: both("X", datatype, "-1"), ...code },
  ]
})

/** Names of Triton's codes in Python, by the numbers of gRPC. */
const errorCodes: Readonly<Record<number, string>> = {
  1: "CANCELLED",
  2: "UNKNOWN",
  3: "INVALID_ARG",
  5: "NOT_FOUND",
  6: "ALREADY_EXISTS",
  12: "UNSUPPORTED",
  13: "INTERNAL",
  14: "UNAVAILABLE",
}

const failures = Object.entries(codes).flatMap(([tag, { grpc }]) =>
  errorCodes[grpc] === undefined ? [] : [[tag, errorCodes[grpc]] as const],
)

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

const models: ReadonlyArray<PythonModel.PythonModel> = [
  ...echoes,
  { name: "simple", ...addSub(["INPUT0", "INPUT1", "OUTPUT0", "OUTPUT1"], "INT32", 16, 8) },
  { name: "onnx_simple", ...addSub(["A", "B", "SUM", "DIFFERENCE"], "FP32", 2, 4) },
  { name: "matrix", config: both("X", "FP32", "[ -1, -1 ]") },
  { name: "pair", config: both("X", "BYTES", "2") },
  {
    name: "versions",
    config: `version_policy { all {} }\n${io("input", "X", "INT32", "1")}${io("output", "VERSION", "INT32", "1")}`,
    code: `outputs = [pb_utils.Tensor("VERSION", np.array([self.version], np.int32))]`,
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
  {
    name: "text",
    config: `max_batch_size: 4\n${io("input", "TEXT", "BYTES", "1")}${io("output", "TEXT", "BYTES", "1")}`,
    code: `outputs = [pb_utils.Tensor("TEXT", get(request, "TEXT"))]`,
  },
  {
    name: "scores",
    config:
      `max_batch_size: 4\n${io("input", "X", "FP32", "-1")}${io("output", "SCORE", "FP32", "-1")}` +
      `${io("output", "CLASS", "BYTES", "1")}${io("output", "TEXT", "BYTES", "1")}${io("output", "HALF", "FP16", "1")}`,
    code: `x = get(request, "X")
rows = len(x)
outputs = [pb_utils.Tensor("SCORE", x), pb_utils.Tensor("CLASS", np.array([[b"dog"]] * rows, dtype=object)),
  pb_utils.Tensor("TEXT", np.array([[b""]] * rows, dtype=object)), pb_utils.Tensor("HALF", np.ones((rows, 1), np.float16))]`,
  },
  {
    name: "fail",
    config: io("input", "TAG", "BYTES", "1") + io("output", "TAG", "BYTES", "1"),
    code: `codes = ${JSON.stringify(Object.fromEntries(failures))}
code = codes.get(get(request, "TAG")[0].decode())
if code is None:
    raise Exception(${JSON.stringify(failure)})
error = pb_utils.TritonError(${JSON.stringify(failure)}, getattr(pb_utils.TritonError, code))`,
  },
  {
    name: "stuck",
    config: both("X", "INT32", "1"),
    code: `while not request.is_cancelled():
    time.sleep(0.01)
error = pb_utils.TritonError("cancelled", pb_utils.TritonError.CANCELLED)`,
  },
]

/** Names of the models that run on both. */
export const names: ReadonlySet<string> = new Set(models.map(({ name }) => name))

/** Why other models of conformance/Models.ts do not. */
export const others: Readonly<Record<string, string>> = {
  asked: "the Python backend sets no parameters of responses",
  ragged: "the Python backend has no batch_input and batch_output",
  shapes: "a configuration of Triton has no tensor without dimensions",
  stopped: "only a model in code stops for good",
}

/** Writes the repository. */
export const write = (directory: string): void => {
  for (const model of models) PythonModel.write(directory, model)
}
