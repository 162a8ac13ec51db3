/** Which model answers, and which of its inputs may be left out. */
import type { InferCase } from "../Case.ts"
import { tensor } from "../InferRequest.ts"

const x = tensor("X", "INT32", [1], [1])

const unknown = (name: string, model: string, version: string, error: string): InferCase => ({
  name,
  proves: ["C16"],
  request: { model, version, inputs: [x] },
  expected: { tag: "ModelNotFound", error },
})

const found: ReadonlyArray<InferCase> = [
  {
    name: "a model that is not there",
    proves: ["C16"],
    request: { model: "nothing", inputs: [x] },
    expected: { tag: "ModelNotFound", error: "Request for unknown model: 'nothing' is not found" },
  },
  unknown(
    "a version that is not there",
    "versions",
    "2",
    "Request for unknown model: 'versions' version 2 is not found",
  ),
  unknown("version 0", "versions", "0", "Request for unknown model: 'versions' version 0 is not found"),
  unknown("a version of a model that is not there", "no", "1", "Request for unknown model: 'no' is not found"),
  {
    name: "a version that is no number, which over HTTP is no path",
    proves: ["C16"],
    request: { model: "versions", version: "x", inputs: [x] },
    expected: {
      tag: "InvalidRequest",
      error:
        "failed to get model version from specified version string 'x' (details: stol), version should be an integral value > 0",
    },
    as: ["gRPC raw", "gRPC contents"],
  },
  ...[undefined, "1", "3"].map((version): InferCase => ({
    name: version === undefined ? "no version is the highest" : `version ${version}`,
    proves: ["C16"],
    request: { model: "versions", ...(version === undefined ? {} : { version }), inputs: [x] },
    expected: { outputs: [tensor("VERSION", "INT32", [1], [Number(version ?? 3)])], version: version ?? "3" },
  })),
  {
    name: "a model that is not ready",
    proves: ["C16"],
    server: "small",
    request: { model: "stopped", inputs: [x] },
    expected: {
      tag: "ModelNotReady",
      error: "Request for unknown model: 'stopped' version 1 is not at ready state",
    },
  },
]

const a = tensor("A", "FP32", [1, 2], [1, 2])
const c = tensor("C", "FP32", [1], [1])
const d = tensor("D", "UINT8", [], [1])

const optional: ReadonlyArray<InferCase> = [
  {
    name: "an optional input is left out",
    proves: ["C19"],
    request: { model: "shapes", inputs: [a, c, d] },
    expected: { outputs: [a, tensor("B", "INT64", [0], []), c, d] },
  },
  {
    name: "a required input is missing where another is optional",
    proves: ["C19"],
    request: { model: "shapes", inputs: [a, c] },
    expected: {
      tag: "InvalidRequest",
      error:
        "[request id: <id_unknown>] expected number of inputs between 3 and 4 but got 2 inputs for model 'shapes'. Got input(s) ['A','C'], but missing " +
        "required input(s) ['D']. Please provide all required input(s).",
    },
  },
  {
    name: "an optional input is checked like any other",
    proves: ["C19"],
    request: { model: "shapes", inputs: [a, tensor("B", "INT32", [1], [1]), c, d] },
    expected: {
      tag: "InvalidRequest",
      error: "[request id: <id_unknown>] inference input 'B' data-type is 'INT32', but model 'shapes' expects 'INT64'",
    },
  },
]

const twice = (shape: ReadonlyArray<number>): InferCase => {
  const elements = Array.from({ length: shape.reduce((product, extent) => product * extent, 1) }, (_, index) => index)
  return {
    name: `a ragged input of [${shape}] is answered in its own shape`,
    request: { model: "ragged", inputs: [tensor("X", "FP32", shape, elements)] },
    expected: {
      outputs: [
        tensor(
          "Y",
          "FP32",
          shape,
          elements.map((element) => element * 2),
        ),
      ],
    },
  }
}

/** One after another, but each in all encodings at the same time. */
const ragged = [twice([1, 3, 2]), twice([4, 1, 2]), twice([1, 0, 2]), twice([2, 500, 2])]

export const models: ReadonlyArray<InferCase> = [...found, ...optional, ...ragged]
