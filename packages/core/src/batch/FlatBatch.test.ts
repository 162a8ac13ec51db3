/** Triton's ragged batches, as values: what the instance is given, and what each request gets back. */
import { expect, it } from "@effect/vitest"
import { Result } from "effect"
import * as Batch from "./Batch.ts"
import * as FlatBatch from "./FlatBatch.ts"
import type { Fields } from "../model/Field.ts"
import * as Grouping from "./Grouping.ts"
import { noParameters, type Request } from "../request/Request.ts"
import * as Model from "../Model.ts"
import * as Tensor from "../Tensor.ts"
import { make, TypedTensor } from "../tensor/TypedTensor.ts"

class Flat extends Model.Service<Flat>()("flat", {
  inputs: {
    X: Tensor.FP32(-1, "m"),
    T: Tensor.BYTES("m"),
    R: Tensor.INT32(2),
    O: Tensor.optional(Tensor.INT32("k")),
  },
  outputs: { X: Tensor.FP32(-1, "m"), T: Tensor.BYTES("m"), R: Tensor.INT32(2) },
  maxBatchSize: 8,
}) {}

const about = (source: "X" | "T", kind: FlatBatch.BatchInputKind, datatype: "FP32" | "INT32" | "INT64" = "INT32") => ({
  kind,
  datatype,
  source,
})

const options = {
  inputs: ["X", "T", "O"],
  batchInputs: {
    COUNT: about("X", "BATCH_ELEMENT_COUNT"),
    END: about("X", "BATCH_ACCUMULATED_ELEMENT_COUNT", "FP32"),
    BEGIN: about("X", "BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO", "INT64"),
    MOST: about("T", "BATCH_MAX_ELEMENT_COUNT_AS_SHAPE"),
    SHAPE: about("X", "BATCH_ITEM_SHAPE"),
    SHAPES: about("X", "BATCH_ITEM_SHAPE_FLATTEN"),
  },
  batchOutputs: { X: "X", T: "T" },
} as const

const { definition } = Flat
const flat = FlatBatch.resolve(definition, options)

const request = (rows: number, n: number, m: number, more: Partial<Request> = {}): Request => ({
  id: "7",
  inputs: [
    make("FP32", [rows, n, m], new Float32Array(rows * n * m).fill(m)),
    make(
      "BYTES",
      [rows, m],
      Array.from({ length: rows * m }, (_, index) => Uint8Array.of(m, index).subarray(0, index % 3)),
    ),
    make("INT32", [rows, 2], new Int32Array(rows * 2).fill(m)),
    undefined,
  ],
  rows,
  parameters: noParameters,
  deadline: undefined,
  ...more,
})

const numbers = (tensor: TypedTensor | undefined) =>
  tensor === undefined ? undefined : [tensor.shape, [...tensor.data].map(Number)]

it("concatenates the elements of a ragged input, and batch inputs give their bounds", () => {
  const { inputs, rows, id } = FlatBatch.join(flat, Batch.make([request(1, 2, 3), request(2, 1, 2), request(1, 0, 2)]))
  expect([rows, id]).toEqual([1, ""])
  const [x, text, r, o, ...made] = inputs
  expect(numbers(x)).toEqual([[10], [3, 3, 3, 3, 3, 3, 2, 2, 2, 2]])
  expect(text?.shape).toEqual([9])
  expect(numbers(r)).toEqual([
    [4, 2],
    [3, 3, 2, 2, 2, 2, 2, 2],
  ])
  expect(o).toBeUndefined()
  expect(made.map(numbers)).toEqual([
    [[3], [6, 4, 0]],
    [[3], [6, 10, 10]],
    [[4], [0, 6, 10, 10]],
    [[4], [0, 0, 0, 0]],
    [
      [4, 2],
      [2, 3, 1, 2, 1, 2, 0, 2],
    ],
    [[8], [2, 3, 1, 2, 1, 2, 0, 2]],
  ])
  expect(made.map((tensor) => tensor?.datatype)).toEqual(["INT32", "FP32", "INT64", "INT32", "INT32", "INT32"])
})

it("the instance has a model without a batch dimension, with the inputs that are made", () => {
  const { maxBatchSize, signature } = FlatBatch.flatDefinition(flat, definition)
  const dims = (specs: typeof signature.inputs) => specs.map((spec) => `${spec.name} [${spec.dims}]`).join(" ")
  expect(maxBatchSize).toBe(0)
  expect(dims(signature.inputs)).toBe(
    "X [-1] T [-1] R [-1,2] O [-1] COUNT [-1] END [-1] BEGIN [-1] MOST [-1] SHAPE [-1,2] SHAPES [-1]",
  )
  expect(dims(signature.outputs)).toBe("X [-1] T [-1] R [-1,2]")
})

it("each request gets its own elements and rows back, in the shape of its input", () => {
  const batch = Batch.make([request(1, 2, 3), request(2, 1, 2), request(1, 0, 2)])
  const [x, text, r] = FlatBatch.join(flat, batch).inputs
  if (x === undefined || text === undefined || r === undefined) throw new Error("None of them may be left out.")
  const parameters = { n: 1n }
  const responses = Result.getOrThrow(FlatBatch.cut(flat, definition, batch, { outputs: [x, text, r], parameters }))
  expect(responses.map(({ outputs }) => outputs.map((tensor) => tensor?.shape))).toEqual([
    [
      [1, 2, 3],
      [1, 3],
      [1, 2],
    ],
    [
      [2, 1, 2],
      [2, 2],
      [2, 2],
    ],
    [
      [1, 0, 2],
      [1, 2],
      [1, 2],
    ],
  ])
  for (const [index, { outputs, parameters: all }] of responses.entries()) {
    expect(all).toBe(parameters)
    for (const [position, output] of outputs.entries()) {
      expect(output?.bytes).toEqual(batch.requests[index]?.inputs[position]?.bytes)
    }
  }
})

it.each([
  [0, [4], "output 'X' of model 'flat' has shape [4], expected 6 elements, as in its inputs"],
  [2, [2, 2], "output 'R' of model 'flat' has shape [2,2], expected 1 rows, as in its inputs"],
])("an output that is not as long as its inputs is a failure (%i)", (position, shape, message) => {
  const batch = Batch.make([request(1, 2, 3)])
  const outputs = FlatBatch.join(flat, batch)
    .inputs.slice(0, 3)
    .flatMap((tensor) => tensor ?? [])
  const wrong = outputs.map((tensor, at) =>
    at === position ? new TypedTensor(tensor.datatype, shape, tensor.bytes) : tensor,
  )
  const outcome = FlatBatch.cut(flat, definition, batch, { outputs: wrong, parameters: {} })
  expect(Result.isFailure(outcome) && outcome.failure).toMatchObject({ _tag: "ExecutionFailed", message })
})

it("requests agree whatever the shapes of their ragged inputs are, not where one is left out", () => {
  const key = Grouping.combine(Grouping.byShapes(Grouping.agreeing(definition.signature, flat.inputs), []), undefined)
  expect(key(request(1, 2, 3))).toBe(key(request(2, 1, 2)))
  const { inputs } = request(1, 2, 3)
  const whole = request(1, 2, 3, { inputs: [...inputs.slice(0, 3), make("INT32", [1, 1], Int32Array.of(1))] })
  expect(key(whole)).not.toBe(key(request(1, 2, 3)))
})

class Padded extends Model.Service<Padded>()("padded", {
  inputs: { X: Tensor.FP32("n") },
  outputs: { X: Tensor.FP32("n") },
  maxBatchSize: 8,
  batching: { ragged: { n: {} } },
}) {}

class Single extends Model.Service<Single>()("single", { inputs: {}, outputs: {} }) {}

it.each<readonly [Model.Definition<Fields, Fields>, FlatBatch.FlatOptions, string]>([
  [definition, { inputs: ["Y"] }, 'inputs names the unknown input "Y"'],
  [
    definition,
    { inputs: [], batchInputs: { Q: about("X", "BATCH_ELEMENT_COUNT"), X: about("X", "BATCH_ELEMENT_COUNT") } },
    "batchInputs.X has the name of a declared input",
  ],
  [
    definition,
    { inputs: [], batchInputs: { Q: { ...about("X", "BATCH_ELEMENT_COUNT"), source: "O" } } },
    'batchInputs.Q names the optional input "O"',
  ],
  [definition, { inputs: [], batchOutputs: { Z: "X" } }, "batchOutputs.Z is not a declared output"],
  [definition, { inputs: [], batchOutputs: { X: "Z" } }, 'batchOutputs.X names the unknown input "Z"'],
  [Padded.definition, { inputs: [] }, "cannot be combined with ragged or padTo"],
  [Single.definition, { inputs: [] }, "requires batching: maxBatchSize is 0"],
])("%#: what is not there, or does not go together, is refused", (model, given, text) => {
  expect(() => FlatBatch.resolve(model, given)).toThrow(new TypeError(`Model "${model.name}": flat ${text}.`))
})
