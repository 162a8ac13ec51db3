/**
 * Python models in place of the ONNX files and scripts of conformance/StoredModels.ts, by the names of the models. A
 * model without one is in `without`, with the reason.
 */
import { type Stored } from "../conformance/StoredParts.ts"
import { numeric } from "../conformance/StoredModels.ts"
import { echoToY, type PythonModel } from "./PythonModel.ts"

/** Without a configuration: that of the stored model. */
export type StandIn = Omit<PythonModel, "name" | "config"> & { readonly config?: string }

const tensor = (kind: "input" | "output", name: string, datatype: string, dims: string, more = "") =>
  `${kind} { name: "${name}" data_type: TYPE_${datatype} dims: [ ${dims} ] ${more} }\n`

/** X → Y. */
const xy = (rows: number, datatype: string, dims: string, code = echoToY, output = dims): StandIn => ({
  config: `max_batch_size: ${rows}\ninstance_group { count: 1 kind: KIND_CPU }\n${tensor("input", "X", datatype, dims)}${tensor("output", "Y", datatype, output)}`,
  code,
})

const addSub = (datatype: string): StandIn => ({
  config:
    "max_batch_size: 4\n" +
    ["A", "B"].map((name) => tensor("input", name, datatype, "2")).join("") +
    ["SUM", "DIFFERENCE"].map((name) => tensor("output", name, datatype, "2")).join(""),
  code: `a, b = get(request, "A"), get(request, "B")
${datatype === "BOOL" ? "sums, differences = a & b, a | b" : "sums, differences = a + b, a - b"}
outputs = [pb_utils.Tensor("SUM", sums), pb_utils.Tensor("DIFFERENCE", differences)]`,
})

const sum = `a, b = get(request, "A"), get(request, "B")
outputs = [pb_utils.Tensor("S", np.array([[(a is not None) * 10 + (b is not None)]], np.int32))]`

const zeros = `x = get(request, "X")
if x.ndim != 1:
    raise Exception("X has shape " + str(x.shape))
outputs = [pb_utils.Tensor("Y", np.zeros(list(x), np.int32))]`

const shaped = (shape: string): StandIn => ({
  code: `x = get(request, "X")
if x.shape[1:] == (${shape}):
    outputs = [pb_utils.Tensor("Y", x)]
else:
    error = pb_utils.TritonError("X has shape " + ",".join(map(str, x.shape)))`,
})

const responses = (lines: string): StandIn => ({ decoupled: lines })

const response = (rows: string) => `pb_utils.InferenceResponse([pb_utils.Tensor("Y", ${rows})])`

const failed = (text: string, code = "INTERNAL") =>
  `sender.send(pb_utils.InferenceResponse(error=pb_utils.TritonError("${text}", pb_utils.TritonError.${code})))`

export const standIns: Readonly<Record<string, StandIn>> = {
  ...Object.fromEntries(numeric.map((datatype) => [`add_sub_${datatype.toLowerCase()}`, addSub(datatype)])),
  bare: xy(4, "FP32", "1", `outputs = [pb_utils.Tensor("Y", get(request, "X") + np.float32(1))]`),
  fixed: xy(0, "FP32", "2, 3"),
  variable: xy(0, "INT64", "2, -1, -1"),
  rows: xy(4, "FP32", "-1"),
  strings: xy(4, "STRING", "-1"),
  scalar: xy(0, "INT32", "1"),
  scalars: xy(4, "FP64", "1"),
  positions: {
    config: tensor("input", "X", "BOOL", "-1") + tensor("output", "INDICES", "INT64", "1, -1"),
    code: `outputs = [pb_utils.Tensor("INDICES", np.nonzero(get(request, "X"))[0].reshape(1, -1).astype(np.int64))]`,
  },
  reshaped: { code: echoToY },
  reshaped_to_nothing: { code: echoToY },
  labelled: {
    config: `max_batch_size: 2\n${tensor("input", "X", "FP32", "3")}${tensor("output", "Y", "FP32", "3", 'label_filename: "labels.txt"')}`,
    code: echoToY,
  },
  optional: {
    code: `x, amount = get(request, "X"), get(request, "AMOUNT")
outputs = [pb_utils.Tensor("Y", x + (np.array([[10, 20]]) if amount is None else amount))]`,
  },
  failing: {
    code: `how, _, tag = get(request, "X")[0].decode().partition(" ")
codes = {"InvalidRequest": "INVALID_ARG", "ModelNotFound": "NOT_FOUND", "Unavailable": "UNAVAILABLE",
  "Unsupported": "UNSUPPORTED", "AlreadyExists": "ALREADY_EXISTS", "Cancelled": "CANCELLED", "Unknown": "UNKNOWN"}
if how == "throw":
    raise Exception("as it was asked")
if how != "return":
    return []
error = pb_utils.TritonError("as it was asked", getattr(pb_utils.TritonError, codes.get(tag, "INTERNAL")))`,
  },
  asking: {
    code: `called = pb_utils.InferenceRequest(model_name="bare", requested_output_names=["Y"], inputs=[pb_utils.get_input_tensor_by_name(request, "X")]).exec()
outputs = called.output_tensors()`,
  },
  script: { code: echoToY },
  plus_optional: {
    code: `x, amount = get(request, "X"), get(request, "AMOUNT")
outputs = [pb_utils.Tensor("Y", x + np.float32(100) if amount is None else x + amount)]`,
  },
  counting: responses(`for number in range(1, int(get(request, "X")[0][0]) + 1):
    if number > 3:
        ${failed("it is enough")}
        break
    sender.send(${response("np.array([[number]], np.float32)")})`),
  pictures: xy(4, "FP32", "2, 3"),
  some_outputs: {
    code: `x = get(request, "X")
outputs = [pb_utils.Tensor("W", x)]
if x[0][0] & 1:
    outputs.append(pb_utils.Tensor("Y", x))
if x[0][0] & 2:
    outputs.append(pb_utils.Tensor("Z", x))`,
  },
  sum_of_some: { code: sum },
  sum_with_a: { code: sum },
  shaped_freely: { code: zeros },
  shaped_in_part: { code: zeros },
  labelling: { code: echoToY },
  unlabelled: { code: echoToY },
  whole_batch: {
    code: `x = get(request, "X")
outputs = [pb_utils.Tensor("Y", x + np.float32(100 * x.shape[0]))]`,
  },
  single_row: { code: echoToY },
  square: shaped("4, 4"),
  reshaped_script: shaped("4, 4"),
  reshaped_to_none: shaped(""),
  reshaped_variable: { code: echoToY },
  reshaped_open: { code: echoToY },
  reshaped_stream: responses(`x = get(request, "X")
sender.send(${response("x")})`),
  sets_nothing: { code: echoToY },
  fails_always: { code: `raise Exception("no way")` },
  apart: responses(`x = get(request, "X")
for rows in [x, *x[:, None]]:
    sender.send(${response("rows")})`),
  counts: responses(`to = int(get(request, "X")[0])
for number in range(1, abs(to) + 1):
    sender.send(${response("np.array([number], np.int32)")})
if to < 0:
    ${failed("no way down", "INVALID_ARG")}`),
  warmed: {
    initialize: "self.seen = []",
    code: `x, texts = get(request, "X"), get(request, "TEXT")
if len(self.seen) < 11:
    shown = ",".join(map(str, x.shape)) + ": " + ",".join(map(str, x.flatten()))
    self.seen.append(shown + " '" + "' '".join(text.decode() for text in texts.flatten()) + "'")
outputs = [pb_utils.Tensor("SEEN", np.array([["; ".join(self.seen).encode()]] * len(x), dtype=object))]`,
  },
  policies: { code: echoToY },
  latest: xy(0, "FP32", "1", `outputs = [pb_utils.Tensor("Y", get(request, "X") + np.float32(self.version))]`),
}

const responseParameters = "the Python backend sets no parameters of responses"

const isOnnx = ({ at = "1/model.onnx" }: Stored) => at.endsWith(".onnx")

/** The reason why a model without a stand-in has none. */
export const without = (stored: Stored): string => {
  if (isOnnx(stored)) return "the contents of an ONNX file: this Triton has no ONNX Runtime backend"
  return /setParameter/.test(String(stored.file)) ? responseParameters : "a script that needs JavaScript"
}
