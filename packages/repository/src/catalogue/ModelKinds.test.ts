/** Models of every kind that a configuration can describe, through the real ONNX Runtime. */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { Tensor } from "@nereid/core"
import * as DataType from "@nereid/core/internal/tensor/DataType"
import { encodeElements, TypedTensor } from "@nereid/core/internal/tensor/TypedTensor"
import {
  addSub,
  type ElementTypeName,
  external,
  initializer,
  model,
  node,
  nonZero,
  value,
} from "../../../../test/fixtures/onnx.ts"
import { plus, repository } from "../../../../test/fixtures/repository.ts"
import { callModel, open } from "../Repository.fixture.ts"

type Dims = ReadonlyArray<number | string>

/** X → Y, unchanged, where the shapes that the file states differ by name alone. */
const identity = (datatype: ElementTypeName, dims: Dims) =>
  model({
    inputs: [value("X", datatype, dims)],
    outputs: [value("Y", datatype, dims)],
    nodes: [node("Identity", ["X"], ["Y"])],
  })

/** The only model of a repository with this file and this configuration. */
const only = Effect.fnUntraced(function* (...files: Parameters<typeof openOnly>) {
  return (yield* openOnly(...files)).found
})

/** Opens the same models, with their repository. */
const openOnly = Effect.fnUntraced(function* (
  file: Uint8Array,
  config?: string,
  more: Record<string, string | Uint8Array> = {},
) {
  const fixture = yield* repository
  fixture.write("m/1/model.onnx", file)
  if (config !== undefined) fixture.write("m/config.pbtxt", config)
  for (const [name, content] of Object.entries(more)) fixture.write(`m/${name}`, content)
  const { registry, index, configuration } = yield* open(fixture)
  const [found] = registry.models
  if (found === undefined) throw new Error(index()[0]?.reason ?? "there is no model")
  return { found, configuration: configuration(found) }
})

const bytes = (...texts: ReadonlyArray<string>) => encodeElements(texts.map((text) => new TextEncoder().encode(text)))

const fixed = DataType.all.filter((datatype) => datatype !== "BF16" && datatype !== "BYTES")

it.live.each(fixed)("%s: the sum and the difference of a batch", (datatype) =>
  Effect.gen(function* () {
    const found = yield* only(addSub(datatype, ["n", 2]), "instance_group { count: 1 }")
    const width = DataType.byteWidth(datatype) ?? 1
    // Zeros: what is computed is not the question, but that it arrives.
    const zeros = new TypedTensor(datatype, [3, 2], new Uint8Array(6 * width))
    const outputs = yield* callModel(found, [zeros, zeros])
    expect(found.description.signature.inputs).toMatchObject([
      { name: "A", datatype, dims: [2] },
      { name: "B", datatype, dims: [2] },
    ])
    const expected = [[3, 2], [...zeros.bytes]]
    expect(outputs.map(({ shape, bytes }) => [shape, [...bytes]])).toEqual([expected, expected])
  }),
)

it.live("strings", () =>
  Effect.gen(function* () {
    const found = yield* only(addSub("BYTES", ["n", 1]), "max_batch_size: 2 dynamic_batching {}")
    const [first, second] = ["Ünïcode 🌊", ""].map((text) => new TypedTensor("BYTES", [1, 1], bytes(text)))
    const outputs = yield* callModel(found, [first, second])
    expect(outputs.map(({ bytes }) => [...bytes])).toEqual([[...bytes("Ünïcode 🌊")], [...bytes("")]])
  }),
)

it.live("BF16 is refused, as onnxruntime-node has none", () =>
  Effect.gen(function* () {
    const failed = yield* Effect.flip(Effect.catchDefect(only(identity("BF16", [2])), Effect.fail))
    expect(String(failed)).toContain("model 'm', tensor 'X': onnxruntime-node has no TYPE_BF16 tensors")
  }),
)

describe("shapes", () => {
  it.live("scalars are one element for clients, alone and in a batch", () =>
    Effect.gen(function* () {
      const { found: single, configuration } = yield* openOnly(identity("INT64", []))
      expect(single.description.signature.inputs).toMatchObject([{ dims: [1] }])
      expect(configuration?.input).toMatchObject([{ dims: [1n], reshape: { shape: [] } }])
      const [output] = yield* callModel(single, [Tensor.make("INT64", [1], BigInt64Array.of(7n))])
      expect([output?.shape, output?.data]).toEqual([[1], BigInt64Array.of(7n)])
      const batch = yield* only(identity("FP32", ["n"]))
      const [rows] = yield* callModel(batch, [Tensor.make("FP32", [3, 1], Float32Array.of(1, 2, 3))])
      expect([rows?.shape, rows?.data]).toEqual([[3, 1], Float32Array.of(1, 2, 3)])
    }),
  )

  it.live("reshape: clients and model have their own, fixed or variable", () =>
    Effect.gen(function* () {
      const config = `max_batch_size: 4
        input { name: "X" data_type: TYPE_FP32 dims: [ 4, -1 ] reshape { shape: [ 2, 2, -1 ] } }
        output { name: "Y" data_type: TYPE_FP32 dims: [ -1, 4 ] reshape { shape: [ 2, 2, -1 ] } }`
      const wrong = yield* Effect.flip(
        Effect.catchDefect(only(identity("FP32", ["n", 2, 2, "k"]), config), Effect.fail),
      )
      expect(String(wrong)).toContain("model output 'Y' has different size for dims and reshape")
      const right = config.replace("[ -1, 4 ]", "[ 4, -1 ]")
      const found = yield* only(identity("FP32", ["n", 2, 2, "k"]), right)
      const [output] = yield* callModel(found, [Tensor.make("FP32", [2, 4, 3], new Float32Array(24).fill(5))])
      expect([output?.shape, output?.data]).toEqual([[2, 4, 3], new Float32Array(24).fill(5)])
      const fixedDims = `input { name: "X" data_type: TYPE_FP32 dims: 4 reshape { shape: [ 2, 2 ] } }
        output { name: "Y" data_type: TYPE_FP32 dims: [ 1, 4 ] reshape { shape: [ 2, 2 ] } }`
      const [line] = yield* callModel(yield* only(identity("FP32", [2, 2]), fixedDims), [
        Tensor.make("FP32", [4], Float32Array.of(1, 2, 3, 4)),
      ])
      expect([line?.shape, line?.data]).toEqual([[1, 4], Float32Array.of(1, 2, 3, 4)])
    }),
  )

  it.live("variable dims take any extent, 0 too", () =>
    Effect.gen(function* () {
      const found = yield* only(identity("FP32", ["n", "k"]))
      for (const extent of [0, 1, 5]) {
        const [output] = yield* callModel(found, [Tensor.make("FP32", [2, extent], new Float32Array(2 * extent))])
        expect(output?.shape).toEqual([2, extent])
      }
      const positions = yield* only(nonZero())
      const [none] = yield* callModel(positions, [Tensor.make("BOOL", [3], Uint8Array.of(0, 0, 0))])
      expect(none?.shape).toEqual([1, 0])
    }),
  )

  it.live("a configuration may say less of a shape than the file", () =>
    Effect.gen(function* () {
      const config =
        'input { name: "X" data_type: TYPE_FP32 dims: -1 } output { name: "Y" data_type: TYPE_FP32 dims: -1 }'
      const found = yield* only(identity("FP32", [2]), config)
      const [output] = yield* callModel(found, [Tensor.make("FP32", [2], Float32Array.of(1, 2))])
      expect(output?.data).toEqual(Float32Array.of(1, 2))
      const failed = yield* Effect.flip(callModel(found, [Tensor.make("FP32", [3], Float32Array.of(1, 2, 3))]))
      expect(failed).toMatchObject({ _tag: "ExecutionFailed", message: expect.stringContaining("invalid dimensions") })
    }),
  )
})

/** X FP32["n",1], and AMOUNT of the same shape, for which the file has a value → Y: their sum. */
const plusOptional = (amount: ReadonlyArray<number>) =>
  model({
    inputs: [value("X", "FP32", ["n", 1]), value("AMOUNT", "FP32", ["n", 1])],
    outputs: [value("Y", "FP32", ["n", 1])],
    nodes: [node("Add", ["X", "AMOUNT"], ["Y"])],
    initializers: [initializer("AMOUNT", "FP32", [amount.length, 1], Float32Array.from(amount))],
  })

describe("optional inputs", () => {
  const column = (...elements: ReadonlyArray<number>) =>
    Tensor.make("FP32", [elements.length, 1], Float32Array.from(elements))
  const named = (more: string) => `input [ { name: "X" data_type: TYPE_FP32 dims: ${more}`
  const batching = `max_batch_size: 4 dynamic_batching {} instance_group { count: 1 kind: KIND_CPU }
    ${named("1 }, { name: 'AMOUNT' data_type: TYPE_FP32 dims: 1 optional: true } ]")}
    output { name: "Y" data_type: TYPE_FP32 dims: 1 }`

  it.live("are those that the file has a value for, and the configuration names", () =>
    Effect.gen(function* () {
      const bare = yield* only(plusOptional([10]))
      expect(bare.description.signature.inputs.map(({ name }) => name)).toEqual(["X"])
      const found = yield* only(plusOptional([10]), batching)
      expect(found.description.signature.inputs).toMatchObject([{ name: "X" }, { name: "AMOUNT", optional: true }])
      // All in one batch.
      const responses = yield* Effect.all(
        [
          callModel(bare, [column(1)]),
          callModel(found, [column(1), undefined]),
          callModel(found, [column(1), column(5)]),
          callModel(found, [column(1, 2), undefined]),
        ],
        { concurrency: "unbounded" },
      )
      expect(responses.map(([output]) => [...(output?.data ?? [])])).toEqual([[11], [11], [6], [11, 12]])
      expect([...found.description.statistics.batches.keys()]).toEqual([4])
    }),
  )

  it.live("without a batch have the whole value, and may be required by the configuration", () =>
    Effect.gen(function* () {
      const tensors = `${named("[ -1, 1 ] }, { name: 'AMOUNT' data_type: TYPE_FP32 dims: [ -1, 1 ] optional: true } ]")}
        output { name: "Y" data_type: TYPE_FP32 dims: [ -1, 1 ] }`
      const found = yield* only(plusOptional([10, 20]), tensors)
      const [left] = yield* callModel(found, [column(1, 2), undefined])
      const [brought] = yield* callModel(found, [column(1, 2), column(5)])
      expect([left?.data, brought?.data]).toEqual([Float32Array.of(11, 22), Float32Array.of(6, 7)])
      const required = yield* only(plusOptional([10, 20]), tensors.replace("optional: true", ""))
      expect(required.description.signature.inputs).toMatchObject([{ optional: false }, { optional: false }])
    }),
  )

  it.live("keep weights in an external file of the model", () =>
    Effect.gen(function* () {
      const file = model({
        inputs: [value("X", "FP32", [2]), value("AMOUNT", "FP32", [2])],
        outputs: [value("Y", "FP32", [2])],
        nodes: [node("Add", ["X", "AMOUNT"], ["SUM"]), node("Add", ["SUM", "WEIGHTS"], ["Y"])],
        initializers: [
          initializer("AMOUNT", "FP32", [2], Float32Array.of(1, 1)),
          external("WEIGHTS", "FP32", [2], "weights.bin"),
        ],
      })
      const config = `${named("2 }, { name: 'AMOUNT' optional: true } ]")} output { name: "Y" }`
      const found = yield* only(file, config, { "1/weights.bin": new Uint8Array(Float32Array.of(100, 200).buffer) })
      const pair = (...elements: readonly [number, number]) => Tensor.make("FP32", [2], Float32Array.from(elements))
      const [left] = yield* callModel(found, [pair(1, 2), undefined])
      const [brought] = yield* callModel(found, [pair(1, 2), pair(10, 10)])
      expect([left?.data, brought?.data]).toEqual([Float32Array.of(102, 203), Float32Array.of(111, 212)])
    }),
  )

  it.live("in a batch have a value for one row", () =>
    Effect.gen(function* () {
      const failed = yield* Effect.flip(Effect.catchDefect(only(plusOptional([10, 20]), batching), Effect.fail))
      expect(String(failed)).toContain(
        "model 'm', tensor 'AMOUNT': a batch needs one row of it for each request, but its value in the model file has shape [2,1]",
      )
    }),
  )

  it.live("may not be those that the model requires", () =>
    Effect.gen(function* () {
      const config = 'input { name: "X" optional: true } output { name: "Y" }'
      const failed = yield* Effect.flip(Effect.catchDefect(only(identity("FP32", [2]), config), Effect.fail))
      expect(String(failed)).toContain("the model requires it but the model configuration has it as optional")
    }),
  )
})

describe("labels", () => {
  it.live("of classes come from a file of the model", () =>
    Effect.gen(function* () {
      const config = 'input { name: "X" } output { name: "Y" label_filename: "labels.txt" }'
      const found = yield* only(identity("FP32", [2]), config, { "labels.txt": "cat\r\ndog\n\n" })
      expect(found.description.signature.outputs).toMatchObject([{ labels: ["cat", "dog"] }])
      const failed = yield* Effect.flip(Effect.catchDefect(only(identity("FP32", [2]), config), Effect.fail))
      expect(String(failed)).toMatch(/failed to open text file for read .*labels\.txt: No such file or directory/)
    }),
  )
})

describe("batches", () => {
  /** Executions of three requests that come together. */
  const executions = Effect.fnUntraced(function* (config: string) {
    const found = yield* only(plus(1), `${config} instance_group { count: 1 kind: KIND_CPU }`)
    const requests = [1, 2, 1].map((rows) => callModel(found, [Tensor.make("FP32", [rows, 1], new Float32Array(rows))]))
    yield* Effect.all(requests, { concurrency: "unbounded" })
    return [...found.description.statistics.batches.keys()].toSorted()
  })

  it.live("consist of requests with dynamic batching, and of one request without it", () =>
    Effect.gen(function* () {
      expect(yield* executions("max_batch_size: 8 dynamic_batching {}")).toEqual([4])
      const given = 'input { name: "X" } output { name: "Y" }'
      expect(yield* executions(`max_batch_size: 8 ${given}`)).toEqual([1, 2])
    }),
  )
})

describe("ONNX Runtime's parameters", () => {
  it.live("are taken, and refused where they are out of range", () =>
    Effect.gen(function* () {
      const parameter = (key: string, text: string) => `parameters { key: "${key}" value { string_value: "${text}" } }`
      const config = [
        parameter("intra_op_thread_count", "2"),
        parameter("execution_mode", "1"),
        parameter("inter_op_thread_count", "2"),
        parameter("enable_mem_arena", "0"),
        "optimization { graph { level: -1 } }",
        "instance_group [ { count: 1 }, { count: 2 kind: KIND_CPU } ]",
      ].join("\n")
      const found = yield* only(plus(3), config)
      expect(found.life.instanceGroups()).toMatchObject([{ count: 1 }, { count: 2 }])
      const [output] = yield* callModel(found, [Tensor.make("FP32", [1, 1], Float32Array.of(1))])
      expect(output?.data[0]).toBe(4)
      const failed = yield* Effect.flip(
        Effect.catchDefect(only(plus(3), parameter("execution_mode", "2")), Effect.fail),
      )
      expect(String(failed)).toContain("parameter 'execution_mode' must be an integer from 0 to 1, but '2' was given")
    }),
  )
})

describe("around a model", () => {
  it.live("a warm-up is executed before, and one that cannot be makes it unavailable", () =>
    Effect.gen(function* () {
      const warmUp = (dims: string, data: string) =>
        `model_warmup { name: "w" batch_size: 2 inputs { key: "X" value { data_type: TYPE_FP32 dims: ${dims} ${data} } } }`
      for (const data of ["zero_data: true", "random_data: true", 'input_data_file: "x"']) {
        const found = yield* only(plus(1), warmUp("1", data), { "warmup/x": "1234" })
        expect([found.description.statistics.success.count, found.life.isReady()]).toEqual([0, true])
      }
      const problems = yield* Effect.forEach(
        [
          only(plus(1), warmUp("1", 'input_data_file: "x"'), { "warmup/x": "123" }),
          only(plus(1), warmUp("1", 'input_data_file: "y"')),
          only(plus(1), warmUp("7", "zero_data: true")),
          only(plus(1), warmUp("1", "zero_data: true").replace('"X"', '"Z"')),
          only(
            plus(1),
            warmUp("1", "zero_data: true").replace("inputs", "inputs { key: 'Z' value { zero_data: true } } inputs"),
          ),
          only(plus(1), warmUp("1", "")),
          only(plus(1), warmUp("-1", "")),
          only(plus(1), warmUp("1", "zero_data: true").replace("TYPE_FP32", "TYPE_INT8")),
          only(plus(1), warmUp("1", "zero_data: true").replace("data_type: TYPE_FP32", "")),
          only(plus(1), warmUp("1", "zero_data: true").replace("batch_size: 2", "batch_size: 9")),
        ],
        (model) => Effect.map(Effect.flip(Effect.catchDefect(model, Effect.fail)), String),
      )
      const [refused, request] = ["Error: Invalid argument: ", "[request id: <id_unknown>] "]
      expect(problems).toEqual([
        `${refused}${request}warmup setting expects 4 bytes, but the data provided from xonly has 3 bytes`,
        expect.stringMatching(
          /^Error: Internal: failed to open text file for read .*warmup\/y: No such file or directory$/,
        ),
        expect.stringMatching(
          /^Error: Invalid argument: .* unexpected shape for input 'X' for model 'm'\. Expected \[-1,1\], got \[1,7\]\./,
        ),
        expect.stringContaining("Got input(s) [], but missing required input(s) ['X']."),
        `${refused}warm-up 'w' of model 'm', input 'Z': the model has no such input`,
        `${refused}${request}warmup setting expects input 'X' to have input_data_type set`,
        `${refused}warmup setting expects all variable-size dimensions are specified for input 'X'`,
        `${refused}${request}inference input 'X' data-type is 'INT8', but model 'm' expects 'FP32'`,
        `${refused}${request}inference input 'X' data-type is '<invalid>', but model 'm' expects 'FP32'`,
        `${refused}failed to run warmup sample 'w': batch size 9 for 'm_0', max allowed is 4; `,
      ])
    }),
  )

  it.live("a response cache answers repeated requests", () =>
    Effect.gen(function* () {
      const found = yield* only(plus(1), "response_cache { enable: true }")
      const input = Tensor.make("FP32", [1, 1], Float32Array.of(1))
      for (let times = 0; times < 3; times++) yield* callModel(found, [input])
      expect([found.description.statistics.cacheHit.count, found.description.statistics.executionCount]).toEqual([2, 1])
    }),
  )
})
