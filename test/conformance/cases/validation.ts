/**
 * Requests rejected before they reach a model: names, datatypes, shapes, sizes. Messages are the same over both
 * protocols.
 */
import type { Line } from "../Acceptance.ts"
import type { InferCase } from "../Case.ts"
import { bytesOf, datatypes } from "../Elements.ts"
import { binaryEncodings, type Encoding, type InferRequest, rawTensor, type Tensor, tensor } from "../InferRequest.ts"

const sixteen = Array.from({ length: 16 }, (_, index) => index)
const input0 = tensor("INPUT0", "INT32", [1, 16], sixteen)
const input1 = tensor("INPUT1", "INT32", [1, 16], sixteen)
const output0 = tensor(
  "OUTPUT0",
  "INT32",
  [1, 16],
  sixteen.map((x) => 2 * x),
)
const output1 = tensor(
  "OUTPUT1",
  "INT32",
  [1, 16],
  sixteen.map(() => 0),
)

const prefix = "[request id: <id_unknown>] "

const note =
  " NOTE: Setting a non-zero max_batch_size in the model config requires a batch dimension to be prepended to each " +
  "input shape. If you want to specify the full shape including the batch dim in your input dims config, try setting " +
  "max_batch_size to zero. See the model configuration docs for more info on max_batch_size."

const refused = (
  name: string,
  line: Line,
  request: InferRequest,
  error: string | RegExp,
  as?: ReadonlyArray<Encoding>,
): InferCase => ({
  name,
  proves: [line],
  request,
  expected: { tag: "InvalidRequest", error: typeof error === "string" ? prefix + error : error },
  ...(as === undefined ? {} : { as }),
})

const simple = (inputs: ReadonlyArray<Tensor>, more: Partial<InferRequest> = {}): InferRequest => ({
  model: "simple",
  inputs,
  ...more,
})

const names: ReadonlyArray<InferCase> = [
  refused(
    "no inputs",
    "C17",
    simple([]),
    "expected 2 inputs but got 0 inputs for model 'simple'. Got input(s) [], but missing required input(s) " +
      "['INPUT0','INPUT1']. Please provide all required input(s).",
  ),
  refused(
    "an input too few",
    "C17",
    simple([input1]),
    "expected 2 inputs but got 1 inputs for model 'simple'. Got input(s) ['INPUT1'], but missing required input(s) " +
      "['INPUT0']. Please provide all required input(s).",
  ),
  refused(
    "an input that the model has not",
    "C17",
    simple([input0, input1, { ...input0, name: "INPUT2" }]),
    "unexpected inference input 'INPUT2' for model 'simple'",
  ),
  refused(
    "an input in lower case",
    "C17",
    simple([input0, { ...input1, name: "input1" }]),
    "unexpected inference input 'input1' for model 'simple'",
  ),
  refused("an input twice", "C17", simple([input0, input1, input0]), "input 'INPUT0' already exists in request"),
  refused(
    "an output that the model has not",
    "C17",
    simple([input0, input1], { outputs: [{ name: "OUTPUT0" }, { name: "OUTPUT2" }] }),
    "unexpected inference output 'OUTPUT2' for model 'simple'",
  ),
  refused(
    "an output twice",
    "C17",
    simple([input0, input1], { outputs: [{ name: "OUTPUT0" }, { name: "OUTPUT0" }] }),
    "output 'OUTPUT0' already exists in request",
  ),
  {
    name: "the id of the request stands before the error",
    proves: ["C18"],
    request: simple([input0, input0], { id: "my id" }),
    expected: { tag: "InvalidRequest", error: "[request id: my id] input 'INPUT0' already exists in request" },
  },
  {
    name: "inputs in any order, outputs in the order asked for",
    proves: ["C17"],
    request: simple([input1, input0], { outputs: [{ name: "OUTPUT1" }, { name: "OUTPUT0" }] }),
    expected: { outputs: [output1, output0] },
  },
  {
    name: "one output alone",
    proves: ["C17"],
    request: simple([input1, input0], { outputs: [{ name: "OUTPUT1" }] }),
    expected: { outputs: [output1] },
  },
  {
    name: "no outputs asked for are all of them",
    proves: ["C17"],
    request: simple([input1, input0], { outputs: [] }),
    expected: { outputs: [output0, output1] },
  },
]

const shapes: ReadonlyArray<InferCase> = [
  ...[[1, 15], [1, 17], [16], [1, 1, 16], [16, 1], [1, 0]].map((shape) =>
    refused(
      `a shape of [${shape}] where [-1,16] is expected`,
      "C18",
      simple([
        tensor(
          "INPUT0",
          "INT32",
          shape,
          Array.from({ length: shape.reduce((a, b) => a * b, 1) }, () => 1),
        ),
        input1,
      ]),
      `unexpected shape for input 'INPUT0' for model 'simple'. Expected [-1,16], got [${shape}].${note}`,
    ),
  ),
  refused(
    "no shape where there is a batch dimension",
    "C18",
    simple([tensor("INPUT0", "INT32", [], [1]), input1]),
    "input 'INPUT0' has no shape but model requires batch dimension for 'simple'",
  ),
  refused(
    "a wrong rank without a batch dimension, and no note on it",
    "C18",
    { model: "matrix", inputs: [tensor("X", "FP32", [1], [1])] },
    "unexpected shape for input 'X' for model 'matrix'. Expected [-1,-1], got [1].",
  ),
  refused(
    "nine rows where eight are the most",
    "C18",
    simple(
      ["INPUT0", "INPUT1"].map((name) =>
        tensor(
          name,
          "INT32",
          [9, 16],
          Array.from({ length: 144 }, () => 1),
        ),
      ),
    ),
    "inference request batch-size must be <= 8 for 'simple'",
  ),
  refused(
    "no rows",
    "C18",
    simple(["INPUT0", "INPUT1"].map((name) => tensor(name, "INT32", [0, 16], []))),
    "inference request batch-size must be >= 1 for 'simple'",
  ),
  refused(
    "inputs with different numbers of rows",
    "C18",
    simple([input0, tensor("INPUT1", "INT32", [2, 16], [...sixteen, ...sixteen])]),
    "input 'INPUT1' batch size does not match other inputs for 'simple'",
  ),
  refused(
    "a dim that must be the same in two inputs and is not",
    "C18",
    {
      model: "shapes",
      inputs: [tensor("A", "FP32", [1, 2], [1, 2]), tensor("C", "FP32", [2], [1, 2]), tensor("D", "UINT8", [], [1])],
    },
    /^\[request id: <id_unknown>\] .*'n'.*$/,
  ),
  refused(
    "a negative extent, which only gRPC can write",
    "C18",
    { model: "matrix", inputs: [rawTensor("X", "FP32", [-1, 1], new Uint8Array(4))] },
    "unexpected shape for input 'X' for model 'matrix'. Expected [-1,-1], got [-1,1].",
    ["gRPC raw"],
  ),
  ...[
    [2n ** 32n, 2n ** 32n],
    [2n ** 31n, 2n ** 33n],
    [2n ** 52n, 2n ** 12n],
  ].map((shape) =>
    refused(
      `as many elements as [${shape}] has`,
      "C18",
      { model: "matrix", inputs: [rawTensor("X", "FP32", shape, new Uint8Array(4))] },
      `input 'X' for model 'matrix' has shape [${shape}], which causes total element count to exceed maximum size of ` +
        "9223372036854775807",
      binaryEncodings,
    ),
  ),
  refused(
    "fewer elements than none can be",
    "C18",
    { model: "matrix", inputs: [rawTensor("X", "FP32", [2n ** 40n, 0n], new Uint8Array(4))] },
    "input byte size mismatch for input 'X' for model 'matrix'. Expected 0, got 4",
    binaryEncodings,
  ),
]

const pair = (strings: ReadonlyArray<string>): InferRequest => ({
  model: "pair",
  inputs: [tensor("X", "BYTES", [2], strings)],
})

const pairOf = (...parts: ReadonlyArray<Uint8Array>): InferRequest => ({
  model: "pair",
  inputs: [rawTensor("X", "BYTES", [2], Buffer.concat(parts))],
})

const lengthDelimited = (...strings: ReadonlyArray<string>): Uint8Array => bytesOf(tensor("", "BYTES", [], strings))

const sizes: ReadonlyArray<InferCase> = [
  ...[0, 1, 63, 65, 128].map((length) =>
    refused(
      `${length} bytes where 64 are expected`,
      "C18",
      simple([rawTensor("INPUT0", "INT32", [1, 16], new Uint8Array(length)), input1]),
      `input byte size mismatch for input 'INPUT0' for model 'simple'. Expected 64, got ${length}`,
      binaryEncodings,
    ),
  ),
  refused(
    "15 elements where 16 are expected, in typed contents",
    "C18",
    simple([tensor("INPUT0", "INT32", [1, 16], sixteen.slice(1)), input1]),
    "input byte size mismatch for input 'INPUT0' for model 'simple'. Expected 64, got 60",
    ["gRPC contents"],
  ),
  refused(
    "two strings where one is expected",
    "C18",
    { model: "single_bytes", inputs: [tensor("X", "BYTES", [1], ["a", "b"])] },
    "unexpected number of string elements 2 for inference input 'X' for model 'single_bytes', expecting 1",
  ),
  refused(
    "three strings where one is expected, of which Triton counts two",
    "C18",
    { model: "single_bytes", inputs: [tensor("X", "BYTES", [1], ["a", "b", "c"])] },
    "unexpected number of string elements 2 for inference input 'X' for model 'single_bytes', expecting 1",
  ),
  refused(
    "one string where two are expected",
    "C18",
    pair(["a"]),
    "expected 2 string elements for inference input 'X' for model 'pair', got 1",
  ),
  refused(
    "no string where two are expected",
    "C18",
    pair([]),
    "expected 2 string elements for inference input 'X' for model 'pair', got 0",
  ),
  refused(
    "one string where two are expected, in an input of another name",
    "C18",
    { model: "pair", inputs: [tensor("Y", "BYTES", [2], ["a"])] },
    "unexpected inference input 'Y' for model 'pair'",
  ),
  ...[1, 2, 3].flatMap((left) =>
    [["a"], ["a", "b"]].map((strings) =>
      refused(
        `a length of ${left} bytes behind ${strings.length} of two strings`,
        "C18",
        pairOf(lengthDelimited(...strings), new Uint8Array(left)),
        "incomplete string length indicator for inference input 'X' for model 'pair', expecting 4 bytes but only " +
          `${left} bytes available. Please make sure the string length indicator is in one buffer.`,
        binaryEncodings,
      ),
    ),
  ),
  refused(
    "a length of 2 bytes behind three strings where two are expected",
    "C18",
    pairOf(lengthDelimited("a", "b", "c"), new Uint8Array(2)),
    "unexpected number of string elements 3 for inference input 'X' for model 'pair', expecting 2",
    binaryEncodings,
  ),
  refused(
    "a string longer than its bytes, where another is missing",
    "C18",
    pairOf(Uint8Array.of(255, 255, 255, 255, 97)),
    "expected 2 string elements for inference input 'X' for model 'pair', got 1",
    binaryEncodings,
  ),
  {
    name: "a string longer than its bytes, without the id and the model",
    proves: ["C18"],
    request: { ...pairOf(lengthDelimited("a"), Uint8Array.of(255, 255, 255, 255, 97)), id: "seven" },
    expected: {
      tag: "InvalidRequest",
      error:
        "incomplete string data for inference input 'X', expecting string of length 4294967295 but only 1 bytes available",
    },
    as: binaryEncodings,
  },
]

/** Every other datatype instead of the declared one. */
const wrongDatatypes: ReadonlyArray<InferCase> = [...datatypes, "STRING", "int32", "", "FP8", "__proto__"]
  .filter((datatype) => datatype !== "INT32")
  .map((datatype) => {
    const as: ReadonlyArray<Encoding> | undefined =
      datatypes.includes(datatype) && datatype !== "BYTES" && datatype !== "BOOL" ? undefined : binaryEncodings
    const elements = datatype === "BYTES" ? sixteen.map(String) : sixteen
    return refused(
      `the datatype ${JSON.stringify(datatype)} where INT32 is expected`,
      "C18",
      simple([tensor("INPUT0", datatype, [1, 16], elements), input1]),
      `inference input 'INPUT0' data-type is '${datatype}', but model 'simple' expects 'INT32'`,
      as,
    )
  })

export const validation: ReadonlyArray<InferCase> = [...names, ...shapes, ...sizes, ...wrongDatatypes]
