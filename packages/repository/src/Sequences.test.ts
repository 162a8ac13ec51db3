/** Models with `sequence_batching` in a repository: ONNX files through the real ONNX Runtime, and scripts. */
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { describe } from "vitest"
import { Tensor } from "@nereid/core"
import { infer } from "@nereid/core/internal/running/CallableModel"
import type { Parameters } from "@nereid/core/internal/request/Request"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import { repository } from "../../../test/fixtures/repository.ts"
import * as sequences from "../../../test/fixtures/sequences.ts"
import { open } from "./Repository.fixture.ts"

const opened = Effect.fnUntraced(function* (config: string, files: Readonly<Record<string, string | Uint8Array>>) {
  const fixture = yield* repository
  for (const [file, content] of Object.entries(files)) fixture.write(`m/${file}`, content)
  fixture.write("m/config.pbtxt", config)
  return yield* open(fixture)
})

const loaded = (config: string, files: Readonly<Record<string, string | Uint8Array>>) =>
  Effect.map(opened(config, files), ({ registry, index }): RunningModel => {
    const [model] = registry.models
    if (model === undefined) throw new Error(index()[0]?.reason)
    return model
  })

const reason = (config: string, files: Readonly<Record<string, string | Uint8Array>>) =>
  Effect.map(opened(config, files), ({ index }) => index()[0]?.reason ?? "it is ready")

const onnx = (file: Uint8Array) => ({ "1/model.onnx": file })

/** Sends the next request of the sequence; returns the elements of its outputs. */
const call = (model: RunningModel, id: bigint | string, flags: "" | "S" | "E" | "SE", input: number) => {
  const parameters: Parameters = {
    sequence_id: id,
    sequence_start: flags.includes("S"),
    sequence_end: flags.includes("E"),
  }
  const shape = model.description.maxBatchSize > 0 ? [1, 1] : [1]
  return Effect.map(
    infer(model.calls, {
      id: "",
      inputs: [Tensor.make("INT32", shape, Int32Array.of(input))],
      rows: 1,
      parameters,
      deadline: undefined,
    }),
    ({ outputs }) => outputs.map((tensor) => (tensor === undefined ? [] : [...tensor.data].map(Number))),
  )
}

describe.each([4, 0])("with max_batch_size %i", (maxBatchSize) => {
  const batches = maxBatchSize > 0

  it.live("an ONNX model sees where its sequence starts", () =>
    Effect.gen(function* () {
      const config = sequences.config(sequences.startAndReady, { maxBatchSize })
      const model = yield* loaded(config, onnx(sequences.flags(batches)))
      expect(yield* call(model, 5n, "S", 1)).toEqual([[2]])
      expect(yield* call(model, 5n, "", 2)).toEqual([[2]])
      expect(yield* call(model, 5n, "E", 3)).toEqual([[3]])
      expect(model.description.statistics.inferenceCount).toBe(3)
    }),
  )

  it.live("an ONNX model sees the id and the end", () =>
    Effect.gen(function* () {
      const config = sequences.config(`oldest { max_candidate_sequences: 3 } ${sequences.allControls}`, {
        maxBatchSize,
      })
      const model = yield* loaded(config, onnx(sequences.ids(batches)))
      expect(yield* call(model, 37n, "S", 1)).toEqual([[2]])
      expect(yield* call(model, 37n, "E", 3)).toEqual([[40]])
      expect(yield* call(model, 9n, "SE", 1)).toEqual([[11]])
    }),
  )

  it.live("the state of a sequence is the input of its next request", () =>
    Effect.gen(function* () {
      const model = yield* loaded(
        sequences.config(sequences.state(), { maxBatchSize }),
        onnx(sequences.accumulator(batches)),
      )
      const sums = yield* Effect.forEach(
        ["a", "b", "c"],
        (id, index) =>
          Effect.gen(function* () {
            yield* call(model, id, "S", index)
            yield* call(model, id, "", 10)
            return yield* call(model, id, "E", 100)
          }),
        { concurrency: "unbounded" },
      )
      expect(sums).toEqual([[[110]], [[111]], [[112]]])
      expect(yield* call(model, "a", "SE", 1)).toEqual([[1]])
    }),
  )
})

it.live("an initial state comes from zeros or from a file", () =>
  Effect.gen(function* () {
    const initial = (data: string) => `initial_state { name: "init" data_type: TYPE_INT32 dims: 1 ${data} }`
    const file = sequences.accumulator(true)
    const zeros = yield* loaded(sequences.config(sequences.state(initial("zero_data: true"))), onnx(file))
    expect(yield* call(zeros, 1n, "S", 1)).toEqual([[1]])
    const read = yield* loaded(sequences.config(sequences.state(initial('data_file: "hundred"'))), {
      "1/model.onnx": file,
      "initial_state/hundred": Uint8Array.of(100, 0, 0, 0, 7),
    })
    expect(yield* call(read, 1n, "S", 1)).toEqual([[101]])
    expect(yield* call(read, 1n, "S", 2)).toEqual([[102]])
  }),
)

it.live("settings of the memory of a state have no effect", () =>
  Effect.gen(function* () {
    const settings = sequences.state("use_same_buffer_for_input_output: true use_growable_memory: true")
    const model = yield* loaded(sequences.config(settings), onnx(sequences.accumulator(true)))
    expect(yield* call(model, 1n, "S", 1)).toEqual([[1]])
    expect(yield* call(model, 1n, "E", 2)).toEqual([[3]])
  }),
)

it.live("a state output that is an output too is returned", () =>
  Effect.gen(function* () {
    const more = `
      input { name: "INPUT" data_type: TYPE_INT32 dims: 1 }
      output { name: "OUTPUT" data_type: TYPE_INT32 dims: 1 }
      output { name: "OUTPUT_STATE" data_type: TYPE_INT32 dims: 1 }`
    const model = yield* loaded(sequences.config(sequences.state(), { more }), onnx(sequences.accumulator(true)))
    expect(yield* call(model, 1n, "S", 1)).toEqual([[1], [1]])
    expect(yield* call(model, 1n, "", 2)).toEqual([[3], [3]])
  }),
)

it.live("the shape of a state may change, and sequences whose states differ share no batch", () =>
  Effect.gen(function* () {
    const more = `
      input { name: "INPUT" data_type: TYPE_INT32 dims: 1 }
      output { name: "OUTPUT" data_type: TYPE_INT32 dims: -1 }`
    const states = sequences.state().replace("dims: 1", "dims: -1")
    const model = yield* loaded(sequences.config(`oldest {} ${states}`, { more }), onnx(sequences.growing()))
    yield* call(model, "long", "S", 1)
    yield* call(model, "long", "", 2)
    const last = (id: string, flags: "S" | "E", input: number) => call(model, id, flags, input)
    const both = yield* Effect.all([last("long", "E", 3), last("short", "S", 9)], { concurrency: "unbounded" })
    expect(both).toEqual([[[0, 1, 2, 3]], [[0, 9]]])
  }),
)

const parameter = (name: string, value: string) => `parameters { key: "${name}" value { string_value: "${value}" } }`

it.live.each([
  {
    controls: sequences.startAndReady.replace('"START"', '"BEGIN"'),
    text: "Internal: configuration specified sequence control 'BEGIN', but model does not provide that input",
  },
  {
    controls: sequences.startAndReady.replace("int32_false_true", "fp32_false_true"),
    text:
      "Invalid argument: unable to load model 'm', sequence control 'START', the model expects data-type INT32 but the " +
      "model configuration specifies data-type TYPE_FP32",
  },
  {
    controls: sequences.startAndReady.slice(sequences.startAndReady.indexOf("control_input", 1)),
    text: "Invalid argument: unable to load model 'm', configuration expects 2 inputs, model provides 3",
  },
])("controls that the file does not have are refused: $text", ({ controls, text }) =>
  Effect.gen(function* () {
    expect(yield* reason(sequences.config(controls), onnx(sequences.flags(true)))).toBe(text)
  }),
)

it.live.each([
  [4, ["n", 2], "[2]"],
  [4, ["n", "m"], "[-1]"],
  [4, ["n"], "[]"],
  [4, ["n", 1, 1], "[1,1]"],
  [0, [2], "[2]"],
] as const)(
  "a control whose dims are not [1] is refused: max_batch_size %i, dims %j",
  ([maxBatchSize, dims, printed]) =>
    Effect.gen(function* () {
      const config = sequences.config(sequences.startAndReady, { maxBatchSize })
      expect(yield* reason(config, onnx(sequences.flags(maxBatchSize > 0, "any", dims)))).toBe(
        "Invalid argument: unable to load model 'm', sequence control 'START' in model has dims " +
          `${printed} but dims [1] is expected`,
      )
    }),
)

it.live("a strategy of batches from a library is refused", () =>
  Effect.gen(function* () {
    const config = sequences.config(sequences.startAndReady) + parameter("TRITON_BATCH_STRATEGY_PATH", "/lib/own.so")
    expect(yield* reason(config, onnx(sequences.flags(true)))).toBe(
      "Invalid argument: TRITON_BATCH_STRATEGY_PATH cannot be specified with sequence batcher, using default batching " +
        "strategy",
    )
  }),
)

const initial = (fields: string) => sequences.state(`initial_state { ${fields} }`)

it.live.each([
  [
    `initial_state field for state input 'INPUT_STATE' must contain exactly one or zero element. Found '2' elements.`,
    sequences.state("initial_state {} initial_state {}"),
  ],
  [
    "The data type used for 'initial_state' field of state 'INPUT_STATE' does not match the state data type.",
    initial('name: "i" data_type: TYPE_FP32 dims: 1 zero_data: true'),
  ],
  [
    "Field 'name' must be set when using initial_state for state input 'INPUT_STATE'.",
    initial("data_type: TYPE_INT32 dims: 1 zero_data: true"),
  ],
  [
    "Number of dimensions in 'initial_state' doesn't match the size of 'state' dimensions for state input 'INPUT_STATE'. 2 != 1",
    initial('name: "i" data_type: TYPE_INT32 dims: [1, 1] zero_data: true'),
  ],
  [
    "'initial_state' field for state input name 'INPUT_STATE' contains variable dimensions.",
    initial('name: "i" data_type: TYPE_INT32 dims: -1 zero_data: true'),
  ],
  [
    "'initial_state' dim for input name 'INPUT_STATE' doesn't match 'state' dim description. 2 != 1",
    initial('name: "i" data_type: TYPE_INT32 dims: 2 zero_data: true'),
  ],
  [
    "initial_state setting expects state'INPUT_STATE' to have state_data set",
    initial('name: "i" data_type: TYPE_INT32 dims: 1'),
  ],
  [
    "initial_state setting expects 4 bytes, but the data provided from shortonly has 2 bytes.",
    initial('name: "i" data_type: TYPE_INT32 dims: 1 data_file: "short"'),
  ],
  ["State input name 'INPUT_STATE' specified more than once.", sequences.state() + sequences.state()],
])("a wrong state is refused: %s", ([text = "", states = ""]) =>
  Effect.gen(function* () {
    const files = { ...onnx(sequences.accumulator(true)), "initial_state/short": Uint8Array.of(1, 2) }
    expect(yield* reason(sequences.config(states), files)).toBe(`Invalid argument: ${text}`)
  }),
)

it.live.each([
  ["max_sequence_backlog", "-1", "from 0 to 1000000"],
  ["max_sequence_backlog", "many", "from 0 to 1000000"],
  ["max_sequence_idle_limit_microseconds", "4999999", "from 5000000 to 999999999999999"],
  ["max_sequence_idle_limit_microseconds", "never", "from 5000000 to 999999999999999"],
  ["max_sequence_state_bytes", "0", "from 1 to 2147483647"],
  ["max_sequence_state_bytes", "1.5", "from 1 to 2147483647"],
] as const)("a wrong limit is refused: %s %s", ([name, value, range]) =>
  Effect.gen(function* () {
    const config = sequences.config(sequences.state()) + parameter(name, value)
    expect(yield* reason(config, onnx(sequences.accumulator(true)))).toBe(
      `Invalid argument: parameter '${name}' must be an integer ${range}, but '${value}' was given`,
    )
  }),
)

it.live("a state beyond its limit ends the sequence", () =>
  Effect.gen(function* () {
    const more = `
      input { name: "INPUT" data_type: TYPE_INT32 dims: 1 }
      output { name: "OUTPUT" data_type: TYPE_INT32 dims: -1 }
      ${parameter("max_sequence_state_bytes", "12")}`
    const states = sequences.state().replace("dims: 1", "dims: -1")
    const model = yield* loaded(sequences.config(`oldest {} ${states}`, { more }), onnx(sequences.growing()))
    yield* call(model, 1n, "S", 1)
    expect(yield* call(model, 1n, "", 2)).toEqual([[0, 1, 2]])
    expect((yield* Effect.flip(call(model, 1n, "", 3))).message).toBe(
      "the state of the sequence has 16 bytes, which exceeds the limit of 12 bytes: model 'm' has ended the sequence",
    )
    expect(yield* Effect.flip(call(model, 1n, "", 3))).toMatchObject({ reason: "tooLarge" })
  }),
)

it.live("an initial state beyond the limit is refused", () =>
  Effect.gen(function* () {
    const config = sequences.config(initial('name: "i" data_type: TYPE_INT32 dims: 1 zero_data: true'))
    const limited = config + parameter("max_sequence_state_bytes", "3")
    expect(yield* reason(limited, onnx(sequences.accumulator(true)))).toBe(
      "Invalid argument: an initial state of 4 bytes exceeds the limit of 3 bytes",
    )
  }),
)

const counter = `
  import { ModelScript } from "@nereid/repository"
  import { Tensor } from "@nereid/core"
  const sums = new Map()
  export default ModelScript.define({
    execute: (requests) => requests.map(({ inputs: { INPUT, START }, sequence }) => {
      if (!sequence.isReady) return {}
      const sum = (sequence.isStart ? 0 : sums.get(sequence.id)) + INPUT.data[0]
      sums.set(sequence.id, sum)
      return { OUTPUT: Tensor.make("INT32", INPUT.shape, Int32Array.of(sum + 1000 * (START?.data[0] ?? 0))) }
    }),
  })`

it.live("a script sees the sequence and its control tensors", () =>
  Effect.gen(function* () {
    const config = sequences.config(`${sequences.startAndReady} oldest { max_candidate_sequences: 2 }`)
    const model = yield* loaded(config, { "1/model.ts": counter })
    expect(yield* call(model, "x", "S", 1)).toEqual([[1001]])
    expect(yield* call(model, 7n, "S", 10)).toEqual([[1010]])
    expect(yield* call(model, "x", "E", 2)).toEqual([[3]])
    expect(yield* call(model, 7n, "E", 5)).toEqual([[15]])
  }),
)

it.live("a script has implicit state", () =>
  Effect.gen(function* () {
    const script = `
      import { ModelScript } from "@nereid/repository"
      import { Tensor } from "@nereid/core"
      export default ModelScript.define({
        execute: (requests) => requests.map(({ inputs: { INPUT, INPUT_STATE } }) => {
          const sum = Tensor.make("INT32", INPUT.shape, Int32Array.of(INPUT.data[0] + INPUT_STATE.data[0]))
          return { OUTPUT: sum, OUTPUT_STATE: sum }
        }),
      })`
    const model = yield* loaded(sequences.config(sequences.state()), { "1/model.ts": script })
    expect(yield* call(model, 1n, "S", 1)).toEqual([[1]])
    expect(yield* call(model, 1n, "", 2)).toEqual([[3]])
    expect(yield* call(model, 1n, "E", 4)).toEqual([[7]])
  }),
)

const countdown = `
  import { ModelScript } from "@nereid/repository"
  import { Tensor } from "@nereid/core"
  export default ModelScript.define({
    execute: (requests) => requests.map(({ inputs: { INPUT, INPUT_STATE }, sequence }) => {
      const left = (sequence.isStart ? INPUT.data[0] : INPUT_STATE.data[0]) - 1
      if (left > 0) return ModelScript.reschedule
      return { OUTPUT: Tensor.make("INT32", INPUT.shape, Int32Array.of(left)) }
    }),
  })`

it.live("a request of an iterative model is executed until it is finished", () =>
  Effect.gen(function* () {
    const script = `
      import { ModelScript } from "@nereid/repository"
      import { Tensor } from "@nereid/core"
      const left = new Map()
      export default ModelScript.define({
        execute: (requests) => requests.map(({ inputs: { INPUT }, sequence: { id, isStart } }) => {
          const steps = (isStart ? INPUT.data[0] : left.get(id)) - 1
          left.set(id, steps)
          if (steps > 0) return ModelScript.reschedule
          return { OUTPUT: Tensor.make("INT32", INPUT.shape, Int32Array.of(-steps)) }
        }),
      })`
    const model = yield* loaded(sequences.config("iterative_sequence: true oldest {}"), { "1/model.ts": script })
    const shape = [1, 1]
    const answer = (input: number) =>
      infer(model.calls, {
        id: "",
        inputs: [Tensor.make("INT32", shape, Int32Array.of(input))],
        rows: 1,
        parameters: {},
        deadline: undefined,
      })
    const answers = yield* Effect.forEach([3, 1, 5], answer, { concurrency: "unbounded" })
    expect(answers.map(({ outputs }) => outputs[0]?.data[0])).toEqual([0, 0, 0])
    expect(model.description.statistics.inferenceCount).toBe(9)
    expect(model.description.statistics.executionCount).toBeLessThan(9)
  }),
)

it.live("a model without iterative_sequence cannot reschedule", () =>
  Effect.gen(function* () {
    const model = yield* loaded(sequences.config(sequences.state()), { "1/model.ts": countdown })
    const error = yield* Effect.flip(call(model, 1n, "SE", 3))
    expect(error.message).toBe(
      "Request is released with TRITONSERVER_REQUEST_RELEASE_RESCHEDULE, while the model is not configured to handle " +
        "such a flag.",
    )
  }),
)

it.live.each([
  { strategy: "oldest {}", rows: 4, shown: { case: "oldest", value: { preferredBatchSize: [4] } } },
  { strategy: "oldest {}", rows: 0, shown: { case: "oldest", value: { preferredBatchSize: [] } } },
  { strategy: "", rows: 4, shown: { case: undefined } },
])("the configuration shows the defaults of '$strategy' with $rows rows, as Triton does", ({ strategy, rows, shown }) =>
  Effect.gen(function* () {
    const config = sequences.config(`${strategy} ${sequences.startAndReady}`, { maxBatchSize: rows, idle: 0 })
    const { registry, configuration } = yield* opened(config, onnx(sequences.flags(rows > 0)))
    expect(configuration(registry.models[0])?.schedulingChoice).toMatchObject({
      case: "sequenceBatching",
      value: { maxSequenceIdleMicroseconds: 1_000_000n, strategyChoice: shown },
    })
  }),
)
