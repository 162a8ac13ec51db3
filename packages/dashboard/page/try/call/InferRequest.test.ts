import { describe, expect, it } from "vitest"
import type { Field, Form, Model } from "../../api/Model.ts"
import { ofBytes, ofNumbers, ofText, type Tensor } from "../tensor/Tensor.ts"
import type { Attempt } from "./Attempt.ts"
import * as GenerateRequest from "./GenerateRequest.ts"
import { make } from "./InferRequest.ts"
import { decodeGenerate, decodeInfer } from "./Output.ts"

const field = (name: string, datatype: string, dims: Field["dims"], form: Form = "tensor"): Field => ({
  name,
  datatype,
  dims,
  form,
  optional: false,
  labels: [],
  schema: undefined,
  default: undefined,
})

const modelOf = (inputs: ReadonlyArray<Field>, outputs: ReadonlyArray<Field>, maxBatchSize = 0): Model => ({
  name: "m/1",
  version: "1",
  platform: "nereid",
  inputs,
  outputs,
  parameters: [],
  errors: [],
  maxBatchSize,
  decoupled: false,
  sequences: undefined,
  config: { name: "m", platform: "", backend: "", max_batch_size: maxBatchSize, input: [], instance_group: [] },
})

const text = field("TEXT", "BYTES", [1], "text")

const attempt = (
  given: ReadonlyArray<readonly [Field, Tensor]>,
  others: Partial<Attempt> = {},
  outputs = [text],
  maxBatchSize = 0,
): Attempt => ({
  model: modelOf(
    given.map(([one]) => one),
    outputs,
    maxBatchSize,
  ),
  inputs: given.map(([one, tensor]) => ({ field: one, tensor })),
  id: "",
  parameters: {},
  ...others,
})

describe("a request of /infer", () => {
  it("is JSON for small tensors, with a batch dimension if the model has one", () => {
    const long = field("x", "INT64", ["n"])
    const { headers, body } = make(
      attempt(
        [
          [long, ofNumbers("INT64", [2], [9007199254740993n, -1n])],
          [text, ofText('a"é')],
        ],
        { id: "7", parameters: { a: 1n, b: true } },
        [text],
        4,
      ),
    )
    expect(headers).toEqual({ "content-type": "application/json" })
    expect(body).toBe(
      '{"id":"7","parameters":{"a":1,"b":true},"inputs":[{"name":"x","datatype":"INT64","shape":[1,2],"data":[9007199254740993,-1]},' +
        '{"name":"TEXT","datatype":"BYTES","shape":[1,1],"data":["a\\"é"]}]}',
    )
  })

  it.each([
    ["FP16", ofNumbers("FP16", [1], [1])],
    ["BF16", ofNumbers("BF16", [1], [1])],
    ["FP32", ofNumbers("FP32", [1], [NaN])],
    ["UINT8", ofNumbers("UINT8", [2000], new Uint8Array(2000))],
    ["BYTES", ofBytes(Uint8Array.of(255))],
  ])("has %s that JSON cannot have as bytes", async (datatype, tensor) => {
    const { headers, body } = make(attempt([[field("x", datatype, ["n"]), tensor]]))
    const length = Number(headers["inference-header-content-length"])
    const bytes = new Uint8Array(await new Blob([body]).arrayBuffer())
    const header = JSON.parse(new TextDecoder().decode(bytes.subarray(0, length)))
    expect(header.inputs[0].parameters.binary_data_size).toBe(bytes.length - length)
  })

  it("asks for bytes of outputs that JSON would round or refuse", () => {
    const outputs = [text, field("y", "INT64", [1], "scalar"), field("z", "INT32", [1], "scalar")]
    const { body } = make(attempt([[text, ofText("")]], {}, outputs))
    expect(JSON.parse(String(body)).outputs).toEqual([
      { name: "TEXT" },
      { name: "y", parameters: { binary_data: true } },
      { name: "z" },
    ])
  })
})

describe("a request of /generate_stream", () => {
  it("is one flat object", () => {
    const given = attempt(
      [
        [text, ofText("a")],
        [field("x", "FP32", ["n"]), ofNumbers("FP32", [2], [0.5, 1])],
        [field("m", "INT32", ["a", "b"]), ofNumbers("INT32", [2, 2], [1, 2, 3, 4])],
        [field("one", "INT64", [1], "scalar"), ofNumbers("INT64", [1], [2n ** 62n])],
      ],
      { id: "i", parameters: { p: "q" } },
    )
    expect(GenerateRequest.make(given)).toBe(
      '{"TEXT":"a","x":[0.5,1],"m":[[1,2],[3,4]],"one":4611686018427387904,"id":"i","parameters":{"p":"q"}}',
    )
  })

  it("refuses what has no JSON", () => {
    const refusal = (datatype: string, tensor: Tensor) => () =>
      GenerateRequest.make(attempt([[field("x", datatype, [1]), tensor]]))
    expect(refusal("FP16", ofNumbers("FP16", [1], [1]))).toThrow("x: FP16 has no JSON")
    expect(refusal("BYTES", ofBytes(Uint8Array.of(255)))).toThrow("x: bytes that are not UTF-8 have no JSON")
    expect(refusal("FP32", ofNumbers("FP32", [1], [NaN]))).toThrow("x: NaN and the infinities have no JSON")
  })
})

describe("a response", () => {
  const model = modelOf([], [text, field("y", "FP16", ["n"]), field("z", "INT64", [1], "scalar")], 4)

  it("of JSON and bytes has its outputs without the batch dimension", () => {
    const header = new TextEncoder().encode(
      '{"outputs":[{"name":"TEXT","datatype":"BYTES","shape":[1,1],"data":["é"]},' +
        '{"name":"y","datatype":"FP16","shape":[1,2],"parameters":{"binary_data_size":4}}],"parameters":{"p":1}}',
    )
    const body = new Uint8Array([...header, 0, 0x3c, 0, 0xc0])
    const { outputs, parameters } = decodeInfer(body, header.length, model)
    expect(outputs.map(({ name, tensor }) => [name, tensor.shape, tensor.data])).toEqual([
      ["TEXT", [1], [new TextEncoder().encode("é")]],
      ["y", [2], Float32Array.of(1, -2)],
    ])
    expect(parameters).toEqual({ p: 1 })
  })

  it("of a stream has the shapes that its model declares", () => {
    const event = { model_name: "m", model_version: "1", TEXT: "a", z: 2n ** 62n, y: [1, 2, 3], language: "de" }
    const { outputs, parameters } = decodeGenerate(event, model)
    expect(outputs.map(({ name, tensor }) => [name, tensor.shape])).toEqual([
      ["TEXT", [1]],
      ["y", [3]],
      ["z", [1]],
    ])
    expect(outputs[2]?.tensor.data).toEqual(BigInt64Array.of(2n ** 62n))
    expect(parameters).toEqual({ language: "de" })
  })
})
