/**
 * Completion of a configuration from a model file, and contradictions between them. The fixtures write the ONNX files
 * (C35).
 */
import { toText } from "@bufbuild/protobuf/txtpb"
import { Result } from "effect"
import { describe, expect, it } from "vitest"
import * as OnnxFile from "@nereid/onnx/internal/OnnxFile"
import { ModelConfigSchema } from "@nereid/protocol/model_config"
import { type ElementTypeName, model, node, value } from "../../../../test/fixtures/onnx.ts"
import * as ConfigCompletion from "./ConfigCompletion.ts"
import * as ConfigText from "./ConfigText.ts"
import * as FileCheck from "../onnx/FileCheck.ts"

type Dims = ReadonlyArray<number | string>

/** X → Y of the same dims. */
const identity = (datatype: ElementTypeName, dims: Dims | undefined) =>
  OnnxFile.signature(
    model({
      inputs: [value("X", datatype, dims)],
      outputs: [value("Y", datatype, dims)],
      nodes: [node("Identity", ["X"], ["Y"])],
    }),
  )

const parse = (text: string) => Result.getOrThrow(ConfigText.parse(`name: "m" ${text}`))

const complete = (text: string, file: OnnxFile.FileSignature, defaultMaxBatchSize = 4) =>
  Result.map(ConfigCompletion.complete(parse(text), file, defaultMaxBatchSize), (config) =>
    toText(ModelConfigSchema, config).replaceAll(/\s+/g, " ").replace('name: "m" ', "").trim(),
  )

describe("completion", () => {
  it.each([
    [
      "of nothing, where all first dims are variable: the default batch size, and a scheduler",
      "",
      ["n", 3],
      'max_batch_size: 4 input: { name: "X" data_type: TYPE_FP32 dims: 3 } output: { name: "Y" data_type: TYPE_FP32 dims: 3 } dynamic_batching: {}',
    ],
    [
      "of a batch size, and a scheduler",
      "max_batch_size: 8",
      [-1, 3],
      'max_batch_size: 8 input: { name: "X" data_type: TYPE_FP32 dims: 3 } output: { name: "Y" data_type: TYPE_FP32 dims: 3 } dynamic_batching: {}',
    ],
    [
      "of a batch size of 1, which needs no scheduler",
      "max_batch_size: 1",
      [-1, 3],
      'max_batch_size: 1 input: { name: "X" data_type: TYPE_FP32 dims: 3 } output: { name: "Y" data_type: TYPE_FP32 dims: 3 }',
    ],
    [
      "where the first dim is fixed: no batching",
      "",
      [2, "n"],
      'input: { name: "X" data_type: TYPE_FP32 dims: 2 dims: -1 } output: { name: "Y" data_type: TYPE_FP32 dims: 2 dims: -1 }',
    ],
    [
      "of scalars",
      "",
      [],
      'input: { name: "X" data_type: TYPE_FP32 dims: 1 reshape: {} } output: { name: "Y" data_type: TYPE_FP32 dims: 1 reshape: {} }',
    ],
    [
      "of scalars in a batch",
      "max_batch_size: 2 sequence_batching {}",
      ["n"],
      'max_batch_size: 2 input: { name: "X" data_type: TYPE_FP32 dims: 1 reshape: {} } output: { name: "Y" data_type: TYPE_FP32 dims: 1 reshape: {} } sequence_batching: {}',
    ],
    [
      "of outputs alone, without batching where none is asked for",
      "input { name: 'X' data_type: TYPE_FP32 dims: [-1, 3] }",
      ["n", 3],
      'input: { name: "X" data_type: TYPE_FP32 dims: -1 dims: 3 } output: { name: "Y" data_type: TYPE_FP32 dims: -1 dims: 3 }',
    ],
    [
      "of what is only named",
      "max_batch_size: 2 input { name: 'X' optional: true } output { name: 'Y' label_filename: 'l' }",
      ["n", 3],
      'max_batch_size: 2 input: { name: "X" data_type: TYPE_FP32 dims: 3 optional: true } output: { name: "Y" data_type: TYPE_FP32 dims: 3 label_filename: "l" }',
    ],
  ])("%s", (_, text, dims, expected) => {
    expect(Result.getOrThrow(complete(text, identity("FP32", dims)))).toBe(expected)
  })

  it("knows every datatype", () => {
    for (const [datatype, name] of [
      ["BYTES", "TYPE_STRING"],
      ["UINT64", "TYPE_UINT64"],
      ["BOOL", "TYPE_BOOL"],
    ] as const) {
      expect(Result.getOrThrow(complete("", identity(datatype, [3])))).toContain(`data_type: ${name}`)
    }
  })

  it("takes another default, and none", () => {
    expect(Result.getOrThrow(complete("", identity("FP32", ["n", 3]), 16))).toContain("max_batch_size: 16")
    const none = Result.getOrThrow(complete("", identity("FP32", ["n", 3]), 0))
    expect(none).not.toContain("max_batch_size")
    expect(none).toContain("dims: -1 dims: 3")
  })

  it("of a batch size that the model does not have is refused", () => {
    expect(complete("max_batch_size: 2", identity("FP32", [2, 3]))).toMatchObject({
      failure:
        "autofill failed for model 'm': model does not support batching while non-zero max_batch_size is specified",
    })
  })
})

const disagreement = (text: string, datatype: ElementTypeName, dims?: Dims) =>
  FileCheck.problem(parse(text), identity(datatype, dims))

const [x, y] = ["input { name: 'X' data_type: TYPE_FP32", "output { name: 'Y' data_type: TYPE_FP32"]

describe("a configuration that is not the file's", () => {
  it.each([
    ["agrees", `${x} dims: [2, 3] } ${y} dims: [2, 3] }`, [2, 3], undefined],
    ["agrees in a batch", `max_batch_size: 2 ${x} dims: 3 } ${y} dims: -1 }`, ["n", 3], undefined],
    ["an output agrees where the file has no rank", `${x} dims: 1 reshape {} } ${y} dims: 7 }`, undefined, undefined],
    [
      "an input that has no rank in the file is a scalar",
      `${x} dims: 3 } ${y} dims: 7 }`,
      undefined,
      "model 'm', tensor 'X': the model expects 0 dimensions (shape []) but the model configuration specifies 1 dimensions (shape [3])",
    ],
    [
      "an input that has no rank in the file has no batch",
      `max_batch_size: 2 ${x} dims: 3 }`,
      undefined,
      "model 'm', tensor 'X': for the model to support batching the shape should have at least 1 dimension and the first dimension must be -1; but shape expected by the model is []",
    ],
    ["agrees once reshaped", `${x} dims: 6 reshape { shape: [2, 3] } } ${y} dims: [2, 3] }`, [2, 3], undefined],
    ["may leave outputs out", `${x} dims: [2, 3] }`, [2, 3], undefined],
    ["other inputs", "input { name: 'Z' }", [2, 3], "unexpected inference input 'Z', allowed inputs are: X"],
    [
      "fewer inputs",
      "",
      [2, 3],
      "unable to load model 'm', the model expects 1 inputs but the model configuration specifies 0",
    ],
    [
      "other outputs",
      `${x} dims: [2, 3] } output { name: 'X' }`,
      [2, 3],
      "unexpected inference output 'X', allowed outputs are: Y",
    ],
    [
      "other datatypes",
      "input { name: 'X' data_type: TYPE_INT32 dims: [2, 3] }",
      [2, 3],
      "model 'm', tensor 'X': the model expects datatype TYPE_FP32 but the model configuration specifies TYPE_INT32",
    ],
    [
      "other ranks",
      `${x} dims: 6 }`,
      [2, 3],
      "model 'm', tensor 'X': the model expects 2 dimensions (shape [2,3]) but the model configuration specifies 1 dimensions (shape [6])",
    ],
    [
      "other extents in a batch",
      `max_batch_size: 2 ${x} dims: 4 }`,
      ["n", 3],
      "model 'm', tensor 'X': the model expects 2 dimensions (shape [-1,3]) but the model configuration specifies 2 dimensions (an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, making complete shape [-1,4])",
    ],
    [
      "a batch that the file does not have",
      `max_batch_size: 2 ${x} dims: 3 }`,
      [2, 3],
      "model 'm', tensor 'X': for the model to support batching the shape should have at least 1 dimension and the first dimension must be -1; but shape expected by the model is [2,3]",
    ],
  ])("%s", (_, text, dims, expected) => {
    expect(disagreement(text, "FP32", dims)).toBe(expected)
  })

  it("onnxruntime-node does not support BF16", () => {
    const text = "input { name: 'X' data_type: TYPE_BF16 dims: 3 }"
    expect(disagreement(text, "BF16", [3])).toBe("model 'm', tensor 'X': onnxruntime-node has no TYPE_BF16 tensors")
  })
})
