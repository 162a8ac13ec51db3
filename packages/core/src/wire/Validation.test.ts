import { expect, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import * as Model from "../Model.ts"
import { ModelStatistics } from "../metrics/ModelStatistics.ts"
import * as Tensor from "../Tensor.ts"
import { validate } from "./Validation.ts"
import type { WireRequest, WireTensor } from "./WireRequest.ts"

class M extends Model.Service<M>()("m", {
  inputs: {
    A: Tensor.INT32(2),
    T: Tensor.BYTES("n"),
    U: Tensor.BYTES("n"),
    O: Tensor.optional(Tensor.FP64("k")),
  },
  outputs: { X: Tensor.INT32(2), Y: Tensor.BYTES("n") },
  maxBatchSize: 8,
}) {}

class Matrix extends Model.Service<Matrix>()("matrix", {
  inputs: { A: Tensor.FP64(-1, -1) },
  outputs: { X: Tensor.FP64(-1, -1) },
}) {}

const running = {
  platform: "test",
  decoupled: false,
  keepsInputs: true,
  instanceGroups: [],
  statistics: new ModelStatistics(),
  isReady: () => true,
  drained: Effect.void,
  pending: () => 0,
  submit: () => () => {},
}

const model = { ...M.definition, ...running }

const strings = (...values: ReadonlyArray<string>) =>
  Tensor.make(
    "BYTES",
    [values.length],
    values.map((value) => new TextEncoder().encode(value)),
  ).bytes

const good: ReadonlyArray<WireTensor> = [
  { name: "A", datatype: "INT32", shape: [1, 2], bytes: new Uint8Array(8) },
  { name: "T", datatype: "BYTES", shape: [1, 2], bytes: strings("a", "") },
  { name: "U", datatype: "BYTES", shape: [1, 2], bytes: strings("b", "c") },
]

const wire = (overrides: Partial<WireRequest>): WireRequest => ({
  modelName: "m",
  modelVersion: "",
  id: "",
  parameters: {},
  inputs: good,
  outputs: [],
  ...overrides,
})

/** The good request with one input changed. */
const changed = (name: string, change: Partial<WireTensor>) =>
  wire({ inputs: good.map((tensor) => (tensor.name === name ? { ...tensor, ...change } : tensor)) })

it("puts inputs and outputs into the order of the signature", () => {
  const inputs = [...good].toReversed()
  const outputs = [{ name: "Y", binary: undefined }]
  const validated = Result.getOrThrow(validate(model, wire({ inputs, outputs, id: "1" }), 5))
  expect(validated.outputs).toEqual([{ position: 1, classification: undefined }])
  expect(validated.request).toMatchObject({ id: "1", rows: 1, deadline: 5 })
  expect(validated.request.inputs.map((tensor) => tensor?.datatype)).toEqual(["INT32", "BYTES", "BYTES", undefined])
})

it("counts the rows of a batch, and gives all outputs to who names none", () => {
  const inputs = [
    { name: "A", datatype: "INT32", shape: [3, 2], bytes: new Uint8Array(24) },
    { name: "T", datatype: "BYTES", shape: [3, 1], bytes: strings("a", "b", "c") },
    { name: "U", datatype: "BYTES", shape: [3, 1], bytes: strings("a", "b", "c") },
  ]
  const validated = Result.getOrThrow(validate(model, wire({ inputs }), undefined))
  expect(validated.request.rows).toBe(3)
  expect(validated.outputs.map(({ position }) => position)).toEqual([0, 1])
})

const prefix = "[request id: <id_unknown>] "

it.each<[string, WireRequest, string]>([
  [
    "missing inputs",
    wire({ inputs: good.slice(1, 2) }),
    "expected number of inputs between 3 and 4 but got 1 inputs for model 'm'. Got input(s) ['T'], but missing " +
      "required input(s) ['A','U']. Please provide all required input(s).",
  ],
  [
    "an unexpected input",
    wire({ inputs: [...good, { name: "Z", datatype: "INT32", shape: [1], bytes: new Uint8Array(4) }] }),
    "unexpected inference input 'Z' for model 'm'",
  ],
  ["an input twice", wire({ inputs: [...good, ...good] }), "input 'A' already exists in request"],
  [
    "another datatype",
    changed("A", { datatype: "FP32" }),
    "inference input 'A' data-type is 'FP32', but model 'm' expects 'INT32'",
  ],
  ["an unknown datatype", changed("A", { datatype: "INT7" }), "inference input 'A' data-type is 'INT7', but model"],
  [
    "another shape",
    changed("A", { shape: [1, 3] }),
    "unexpected shape for input 'A' for model 'm'. Expected [-1,2], got [1,3]. NOTE: ",
  ],
  [
    "another rank",
    changed("A", { shape: [2] }),
    "unexpected shape for input 'A' for model 'm'. Expected [-1,2], got [2]. NOTE: ",
  ],
  [
    "a negative extent",
    changed("T", { shape: [1, -1] }),
    "unexpected shape for input 'T' for model 'm'. Expected [-1,-1], got [1,-1].",
  ],
  ["no shape", changed("A", { shape: [] }), "input 'A' has no shape but model requires batch dimension for 'm'"],
  [
    "differing rows",
    changed("A", { shape: [2, 2], bytes: new Uint8Array(16) }),
    "input 'T' batch size does not match other inputs for 'm'",
  ],
  [
    "too many rows",
    wire({ inputs: good.map((tensor) => ({ ...tensor, shape: [9, 2] })) }),
    "inference request batch-size must be <= 8 for 'm'",
  ],
  [
    "no rows",
    wire({ inputs: good.map((tensor) => ({ ...tensor, shape: [0, 2] })) }),
    "inference request batch-size must be >= 1 for 'm'",
  ],
  [
    "too few bytes",
    changed("A", { bytes: new Uint8Array(7) }),
    "input byte size mismatch for input 'A' for model 'm'. Expected 8, got 7",
  ],
  [
    "too few strings",
    changed("T", { bytes: strings("a") }),
    "expected 2 string elements for inference input 'T' for model 'm', got 1",
  ],
  [
    "too many strings",
    changed("T", { bytes: strings("a", "b", "c") }),
    "unexpected number of string elements 3 for inference input 'T' for model 'm', expecting 2",
  ],
  [
    "half a length",
    changed("T", { bytes: strings("a", "b").subarray(0, 7) }),
    "incomplete string length indicator for inference input 'T' for model 'm', expecting 4 bytes but only 2 bytes available. Please make sure the string length indicator is in one buffer.",
  ],
  [
    "half a length behind the last string",
    changed("T", { bytes: strings("a", "b", "").subarray(0, 12) }),
    "incomplete string length indicator for inference input 'T' for model 'm', expecting 4 bytes but only 2 bytes available. Please make sure the string length indicator is in one buffer.",
  ],
  [
    "half a string where another is missing",
    changed("T", { bytes: strings("bcd").subarray(0, 5) }),
    "expected 2 string elements for inference input 'T' for model 'm', got 1",
  ],
  [
    "half a string too many",
    changed("T", { bytes: strings("a", "b", "cd").subarray(0, 15) }),
    "unexpected number of string elements 3 for inference input 'T' for model 'm', expecting 2",
  ],
  [
    "a symbol with two extents",
    changed("U", { shape: [1, 1], bytes: strings("a") }),
    "dimension 'n' is 2 in input 'T' but 1 in input 'U' for model 'm'",
  ],
  [
    "a shape beyond all bounds",
    wire({
      inputs: [...good, { name: "O", datatype: "FP64", shape: [1, Number.MAX_SAFE_INTEGER], bytes: new Uint8Array() }],
    }),
    "input byte size mismatch for input 'O' for model 'm'. Expected 72057594037927928, got 0",
  ],
  [
    "an unknown output",
    wire({ outputs: [{ name: "Z", binary: true }] }),
    "unexpected inference output 'Z' for model 'm'",
  ],
  [
    "an output twice",
    wire({
      outputs: [
        { name: "X", binary: true },
        { name: "X", binary: true },
      ],
    }),
    "output 'X' already exists in request",
  ],
])("refuses %s", (_, request, message) => {
  const error = Result.getOrThrow(Result.flip(validate(model, request, undefined)))
  expect(error._tag).toBe("InvalidRequest")
  expect(error.message.startsWith(prefix + message), error.message).toBe(true)
})

it.each([
  [
    [2 ** 32, 2 ** 31],
    "input 'A' for model 'matrix' has shape [4294967296,2147483648], which causes total element count to exceed " +
      "maximum size of 9223372036854775807",
  ],
  [[2 ** 32, 2 ** 31 - 1], "byte size overflow for input 'A' for model 'matrix'"],
  [[2 ** 32, 0], undefined],
])("counts the bytes of the shape [%s]", (shape, message) => {
  const inputs = [{ name: "A", datatype: "FP64", shape, bytes: new Uint8Array() }]
  const validated = validate({ ...Matrix.definition, ...running }, wire({ inputs }), undefined)
  const refusal = Result.isFailure(validated) ? validated.failure.message : undefined
  expect(refusal).toBe(message && prefix + message)
})
