/** Parts of a request other than inputs: parameters, classification of outputs; and failures of models. */
import type { Tag } from "@nereid/core/Errors"
import type { InferCase } from "../Case.ts"
import { codes } from "../Codes.ts"
import { binaryEncodings, type Element, type Encoding, type Parameters, tensor } from "../InferRequest.ts"
import { failure } from "../Models.ts"

const x = (shape: ReadonlyArray<number>, elements: ReadonlyArray<Element>) => tensor("X", "FP32", shape, elements)

const classes = (
  name: string,
  shape: ReadonlyArray<number>,
  elements: ReadonlyArray<Element>,
  count: bigint,
  expected: { readonly shape: ReadonlyArray<number>; readonly texts: ReadonlyArray<string> },
  output = "SCORE",
): InferCase => ({
  name: `classes: ${name}`,
  proves: ["C20"],
  request: {
    model: "scores",
    inputs: [x(shape, elements)],
    outputs: [{ name: output, parameters: { classification: count } }],
  },
  expected: { outputs: [tensor(output, "BYTES", expected.shape, expected.texts)] },
})

const classification: ReadonlyArray<InferCase> = [
  classes("the highest", [1, 3], [1, 3, 2], 1n, { shape: [1, 1], texts: ["3.000000:1"] }),
  classes("the two highest of each row", [2, 3], [1, 3, 2, 0.5, 0.25, 4], 2n, {
    shape: [2, 2],
    texts: ["3.000000:1", "2.000000:2", "4.000000:2", "0.500000:0"],
  }),
  classes("more than there are is all", [1, 2], [1, 2], 99n, { shape: [1, 2], texts: ["2.000000:1", "1.000000:0"] }),
  classes("none is one", [1, 2], [1, 2], 0n, { shape: [1, 1], texts: ["2.000000:1"] }),
  classes("less than none is one", [1, 2], [1, 2], -5n, { shape: [1, 1], texts: ["2.000000:1"] }),
  classes("as many as 64 bits count", [1, 2], [1, 2], 2n ** 63n - 1n, {
    shape: [1, 2],
    texts: ["2.000000:1", "1.000000:0"],
  }),
  classes("equal ones in their order", [1, 3], [1, 1, 1], 3n, {
    shape: [1, 3],
    texts: ["1.000000:0", "1.000000:1", "1.000000:2"],
  }),
  classes("of nothing, nothing", [1, 0], [], 3n, { shape: [1, 0], texts: [] }),
  classes("infinities and NaN", [1, 3], [Number.NaN, -Infinity, Infinity], 3n, {
    shape: [1, 3],
    texts: ["inf:2", "-inf:1", "nan:0"],
  }),
  classes("with a label", [1, 1], [1], 1n, { shape: [1, 1], texts: ["1:0:dog"] }, "CLASS"),
  {
    name: "classes: of a row with more than 1,000,000 elements, not even one",
    proves: ["C20"],
    request: {
      model: "single_int8",
      inputs: [
        tensor(
          "X",
          "INT8",
          [1_000_001],
          Array.from({ length: 1_000_001 }, () => 1),
        ),
      ],
      outputs: [{ name: "X", parameters: { classification: 1n } }],
    },
    expected: { tag: "InvalidRequest", error: "classification output tensor too large" },
    as: binaryEncodings,
  },
  ...["TEXT", "HALF"].map((output): InferCase => ({
    name: `classes: none of ${output}`,
    proves: ["C20"],
    request: {
      model: "scores",
      inputs: [x([1, 1], [1])],
      outputs: [{ name: output, parameters: { classification: 1n } }],
    },
    expected: {
      tag: "InvalidRequest",
      error: `class result not available for output due to unsupported type '${output === "TEXT" ? "BYTES" : "FP16"}'`,
    },
  })),
  {
    name: "classes: one output as classes and one as it is",
    proves: ["C20"],
    request: {
      model: "scores",
      inputs: [x([1, 2], [1, 2])],
      outputs: [{ name: "SCORE" }, { name: "CLASS", parameters: { classification: 1n } }],
    },
    expected: { outputs: [tensor("SCORE", "FP32", [1, 2], [1, 2]), tensor("CLASS", "BYTES", [1, 1], ["1:0:dog"])] },
  },
]

const withParameters = (name: string, parameters: Parameters, refused = false): InferCase => ({
  name,
  proves: ["C21"],
  request: { model: "single_int32", parameters, inputs: [tensor("X", "INT32", [1], [5])] },
  expected: refused
    ? { tag: "InvalidRequest", error: /parameter keys starting with 'triton_' are reserved for Triton usage/ }
    : { outputs: [tensor("X", "INT32", [1], [5])] },
})

const parameters: ReadonlyArray<InferCase> = [
  withParameters("parameters of four kinds", { a: true, b: -(2n ** 63n), c: 0.5, d: "größe" }),
  withParameters("a parameter called __proto__", { ["__proto__"]: "x", constructor: true }),
  withParameters("a priority and a timeout", { priority: 1n, timeout: 1_000_000n }),
  withParameters("no parameters", {}),
  withParameters("a name that is reserved", { triton_x: 1n }, true),
  withParameters("a name that is reserved, among others", { a: true, triton_: "x" }, true),
  withParameters("a name that only looks reserved", { Triton_x: 1n, my_triton_x: 2n }),
]

const text = (element: Element) => tensor("TEXT", "BYTES", [1, 1], [element])

const inCode: ReadonlyArray<InferCase> = [
  {
    name: "text is text",
    proves: ["C10"],
    request: { model: "text", inputs: [text("größer \u{1f419}\u0000")] },
    expected: { outputs: [text("größer \u{1f419}\u0000")] },
  },
  {
    name: "what is no text is refused by its field",
    proves: ["C10"],
    request: { model: "text", id: "t", inputs: [text(Uint8Array.of(0xff))] },
    expected: { tag: "InvalidRequest", error: /^\[request id: t\] input 'TEXT' of model 'text': .*UTF-8/ },
  },
]

const tags = Object.keys(codes).filter((tag): tag is Tag => Object.hasOwn(codes, tag))

const failures: ReadonlyArray<InferCase> = [
  ...tags.map((tag): InferCase => ({
    name: `a model that fails with ${tag}`,
    proves: ["C5"],
    request: { model: "fail", inputs: [tensor("TAG", "BYTES", [1], [tag])] },
    expected: { tag, error: failure },
  })),
  {
    name: "a model that fails with another error",
    proves: ["C5"],
    request: { model: "fail", inputs: [tensor("TAG", "BYTES", [1], ["other"])] },
    expected: {
      tag: "ExecutionFailed",
      error: `Failed to process the request(s) for model 'fail_0', message: ${failure}`,
    },
  },
]

const raw: ReadonlyArray<Encoding> = ["HTTP raw body"]

const rawBodies: ReadonlyArray<InferCase> = [
  ...[
    { model: "single_fp32", input: x([3], [1, 2, 3]) },
    { model: "batched_fp32", input: x([1, 3], [1, 2, 3]) },
    { model: "single_fp32", input: x([0], []) },
    { model: "single_fp16", input: tensor("X", "FP16", [2], [0.5, 65504]) },
    { model: "single_int64", input: tensor("X", "INT64", [1], [-(2n ** 63n)]) },
    { model: "text", input: tensor("TEXT", "BYTES", [1, 1], ["no length before it"]) },
    { model: "text", input: tensor("TEXT", "BYTES", [1, 1], [""]) },
  ].map(({ model, input }): InferCase => ({
    name: `a raw body for ${model}, ${input.elements.length} elements`,
    proves: ["C9"],
    request: { model, inputs: [input] },
    expected: { outputs: [input] },
    as: raw,
  })),
  {
    name: "a raw body where there are two inputs",
    proves: ["C9"],
    request: { model: "simple", inputs: [x([1], [1])] },
    expected: {
      tag: "InvalidRequest",
      error:
        "[request id: <id_unknown>] Raw request must only have 1 input (found 1) to be deduced but got 2 inputs in " +
        "'simple' model configuration",
    },
    as: raw,
  },
  {
    name: "a raw body where two dims vary",
    proves: ["C9"],
    request: { model: "matrix", inputs: [x([1], [1])] },
    expected: {
      tag: "InvalidRequest",
      error:
        "[request id: <id_unknown>] The shape of the raw input 'X' can not be deduced because there are more than one " +
        "variable-sized dimension",
    },
    as: raw,
  },
  ...["pair", "single_bytes"].map((model): InferCase => ({
    name: `a raw body of strings for ${model}`,
    proves: ["C9"],
    request: { model, inputs: [tensor("X", "BYTES", [1], ["a"])] },
    expected: {
      tag: "InvalidRequest",
      error: "[request id: <id_unknown>] For BYTE datatype raw input 'X', the model must have input shape [1]",
    },
    as: raw,
  })),
  {
    name: "a raw body that does not fill its elements",
    proves: ["C9"],
    request: { model: "single_int32", inputs: [{ ...tensor("X", "UINT8", [5], [1, 2, 3, 4, 5]) }] },
    expected: {
      tag: "InvalidRequest",
      error:
        "[request id: <id_unknown>] input byte size mismatch for input 'X' for model 'single_int32'. Expected 4, got 5",
    },
    as: raw,
  },
]

export const outputs: ReadonlyArray<InferCase> = [
  ...classification,
  ...parameters,
  ...inCode,
  ...failures,
  ...rawBodies,
]
