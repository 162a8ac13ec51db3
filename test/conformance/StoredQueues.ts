/**
 * A repository of models that queue and batch by their configuration. Some are scripts that a test blocks
 * (GatedExecution.ts), named like those of Models.ts if they are equal; others are ONNX files. StoredModels.ts has the
 * models for single requests.
 */
import { Effect, Layer } from "effect"
import { Repository } from "@nereid/repository"
import { initializer, model, node, value } from "../fixtures/onnx.ts"
import { repository } from "../fixtures/repository.ts"
import { holding } from "./GatedExecution.ts"
import { type Tensor, tensor } from "./InferRequest.ts"

/** An input of one or more columns, whose elements are all the same. */
export const x = (rows: number, columns = 1, name = "X"): Tensor =>
  tensor(
    name,
    "INT32",
    [rows, columns],
    Array.from({ length: rows * columns }, () => 7),
  )

const io = (more: string) => ["input", "output"].map((kind) => `${kind} { name: "X" ${more} }`).join("\n")

const int32 = io("data_type: TYPE_INT32 dims: 1")

const variable = io("data_type: TYPE_INT32 dims: -1")

const ragged = variable.replace("-1", "-1 allow_ragged_batch: true")

const batching = (...more: ReadonlyArray<string>) => `dynamic_batching { ${more.join("\n")} }`

const policy = (more: string) => `default_queue_policy { ${more} }`

/** Longer than any test, so that an answered request cannot have waited for the delay. */
const forever = "max_queue_delay_microseconds: 600000000"

/** Scripts that answer X with X, by their configurations. */
const held: Readonly<Record<string, string>> = {
  levels: `max_batch_size: 1 ${int32} ${batching(
    "priority_levels: 4 default_priority_level: 2",
    policy("max_queue_size: 4 default_timeout_microseconds: 20000000 allow_timeout_override: true"),
    "priority_queue_policy { key: 1 value { max_queue_size: 1 } }",
    `priority_queue_policy {
      key: 3 value { timeout_action: DELAY default_timeout_microseconds: 20000000 allow_timeout_override: true }
    }`,
    "priority_queue_policy [{ key: 4 value { default_timeout_microseconds: 1000, allow_timeout_override: true } }]",
  )}`,
  delays: `max_batch_size: 1 ${int32} ${batching(
    policy("timeout_action: DELAY default_timeout_microseconds: 20000000 allow_timeout_override: true"),
  )}`,
  ordered: `max_batch_size: 1 ${int32} ${batching("preserve_ordering: true")} instance_group { count: 2 kind: KIND_CPU }`,
  bounded: `max_batch_size: 1 ${int32} ${batching(policy("max_queue_size: 1"))}`,
  fills: `max_batch_size: 4 ${int32} ${batching()}`,
  fills_by_level: `max_batch_size: 2 ${int32} ${batching("priority_levels: 2 default_priority_level: 2")}`,
  levels_without_batch: `max_batch_size: 0 ${int32} ${batching("priority_levels: 2 default_priority_level: 2")}`,
  prefers: `max_batch_size: 8 ${int32} ${batching("preferred_batch_size: [ 2, 4 ]", forever)}`,
  prefers_four: `max_batch_size: 8 ${int32} ${batching(
    "preferred_batch_size: [ 4, 8 ]",
    forever,
    policy("default_timeout_microseconds: 600000000 allow_timeout_override: true"),
  )}`,
  prefers_four_late: `max_batch_size: 8 ${int32} ${batching(
    "preferred_batch_size: [ 4, 8 ]",
    forever,
    policy("timeout_action: DELAY default_timeout_microseconds: 600000000 allow_timeout_override: true"),
  )}`,
  hurries: `max_batch_size: 8 ${int32} ${batching("preferred_batch_size: 4 max_queue_delay_microseconds: 1000")}`,
  shapes: `max_batch_size: 4 ${variable} ${batching()}`,
  shapes_wait: `max_batch_size: 4 ${variable} ${batching(forever)}`,
  options_wait: `max_batch_size: 4 ${int32} ${batching(forever)}
    input { name: "B" data_type: TYPE_INT32 dims: 1 optional: true }`,
  shapes_ragged: `max_batch_size: 4 ${ragged} ${batching()}`,
  alone: `max_batch_size: 4 ${int32}`,
}

/** Answers with the number of executions so far; fails on demand. */
const executions = `
  let executions = 0
  export default {
    execute: (requests) => {
      executions += 1
      return requests.map(({ parameters, inputs: { X } }) => {
        if (parameters["fail"] === true) return new Error("as it was asked to")
        const bytes = new Uint8Array(Int32Array.from(X.data, () => executions).buffer)
        return { X: new X.constructor("INT32", X.shape, bytes) }
      })
    },
  }`

/** 1, 2, … up to X; fails behind as many as X says where it is negative. */
const counts = `
  export default {
    execute: function* ({ inputs: { X } }) {
      for (let i = 1; i <= Math.abs(X.data[0]); i++) {
        yield { X: new X.constructor("INT32", [1, 1], new Uint8Array(Int32Array.of(i).buffer)) }
      }
      if (X.data[0] < 0) throw new Error("no way down")
    },
  }`

/** A model that nothing has loaded, and whose warm-up is held. */
export const warming = "warming"

/** ONNX files that answer X with X as Y, of one session. */
const sessions: Readonly<Record<string, string>> = {
  onnx_gathers: `${batching("preferred_batch_size: 2", forever)}
    parameters { key: "batch_group_order" value { string_value: "independent" } }`,
  onnx_cached: "response_cache { enable: true }",
  onnx_alone: 'input { name: "X" data_type: TYPE_INT32 dims: -1 } output { name: "Y" data_type: TYPE_INT32 dims: -1 }',
}

const identity = model({
  inputs: [value("X", "INT32", ["n", "k"])],
  outputs: [value("Y", "INT32", ["n", "k"])],
  nodes: [node("Identity", ["X"], ["Y"])],
})

/** X in one row behind the other → Y = X + X, and what else the batch has, row by row. */
const echoModel = model({
  inputs: [
    value("X", "FP32", ["elements"]),
    value("COUNT", "INT32", ["requests"]),
    value("END", "INT32", ["requests"]),
    value("BOUND", "INT32", ["bounds"]),
    value("MOST", "FP32", ["most"]),
    value("SHAPE", "INT32", ["rows", 2]),
    value("FLAT", "FP32", ["dims"]),
  ],
  outputs: [
    value("Y", "FP32", ["elements"]),
    value("COUNTS", "INT32", ["requests"]),
    value("ENDS", "INT32", ["requests"]),
    value("BEGINS", "INT32", ["requests"]),
    value("MOSTS", "INT64", ["requests"]),
    value("SHAPES", "INT32", ["rows", 2]),
    value("FLATS", "FP32", ["rows", 2]),
  ],
  nodes: [
    node("Add", ["X", "X"], ["Y"]),
    node("Identity", ["COUNT"], ["COUNTS"]),
    node("Identity", ["END"], ["ENDS"]),
    node("Slice", ["BOUND", "ZERO", "LAST"], ["BEGINS"]),
    node("Shape", ["MOST"], ["LENGTH"]),
    node("Shape", ["COUNT"], ["REQUESTS"]),
    node("Expand", ["LENGTH", "REQUESTS"], ["MOSTS"]),
    node("Identity", ["SHAPE"], ["SHAPES"]),
    node("Reshape", ["FLAT", "PAIRS"], ["FLATS"]),
  ],
  initializers: [
    initializer("ZERO", "INT64", [1], BigInt64Array.of(0n)),
    initializer("LAST", "INT64", [1], BigInt64Array.of(-1n)),
    initializer("PAIRS", "INT64", [2], BigInt64Array.of(-1n, 2n)),
  ],
})

/** The same for requests of several rows, which have other numbers. */
const toldRows = model({
  inputs: [value("X", "FP32", ["elements"]), value("SHAPE", "INT32", ["rows", 2])],
  outputs: [value("Y", "FP32", ["elements"]), value("SHAPES", "INT32", ["rows", 2])],
  nodes: [node("Add", ["X", "X"], ["Y"]), node("Identity", ["SHAPE"], ["SHAPES"])],
})

const batchInput = (kind: string, name: string, datatype: string) =>
  `batch_input { kind: ${kind} target_name: "${name}" data_type: ${datatype} source_input: "X" }`

const output = (name: string, more: string) => `output { name: "${name}" ${more} }`

const number = "dims: 1 reshape { shape: [] }"

const raggedX = [
  "max_batch_size: 4 instance_group { count: 1 kind: KIND_CPU }",
  'input { name: "X" data_type: TYPE_FP32 dims: [ -1, -1 ] allow_ragged_batch: true }',
  output("Y", "data_type: TYPE_FP32 dims: [ -1, -1 ]"),
  output("SHAPES", "data_type: TYPE_INT32 dims: 2"),
  batchInput("BATCH_ITEM_SHAPE", "SHAPE", "TYPE_INT32"),
  'batch_output { kind: BATCH_SCATTER_WITH_INPUT_SHAPE target_name: "Y" source_input: "X" }',
]

const ragging: ReadonlyArray<readonly [name: string, file: Uint8Array, config: ReadonlyArray<string>]> = [
  [
    "onnx_ragged",
    echoModel,
    [
      ...raggedX,
      batching("preferred_batch_size: 4", forever),
      output("COUNTS", `data_type: TYPE_INT32 ${number}`),
      output("ENDS", `data_type: TYPE_INT32 ${number}`),
      output("BEGINS", `data_type: TYPE_INT32 ${number}`),
      output("MOSTS", `data_type: TYPE_INT64 ${number}`),
      output("FLATS", "data_type: TYPE_FP32 dims: 2"),
      batchInput("BATCH_ELEMENT_COUNT", "COUNT", "TYPE_INT32"),
      batchInput("BATCH_ACCUMULATED_ELEMENT_COUNT", "END", "TYPE_INT32"),
      batchInput("BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO", "BOUND", "TYPE_INT32"),
      batchInput("BATCH_MAX_ELEMENT_COUNT_AS_SHAPE", "MOST", "TYPE_FP32"),
      batchInput("BATCH_ITEM_SHAPE_FLATTEN", "FLAT", "TYPE_FP32"),
    ],
  ],
  ["onnx_ragged_rows", toldRows, [...raggedX, batching("preferred_batch_size: 3", forever)]],
]

export const layer = Layer.unwrap(
  Effect.map(repository, (fixture) => {
    for (const [name, config] of Object.entries(held)) {
      fixture.write(`${name}/1/model.js`, holding())
      fixture.write(`${name}/config.pbtxt`, config)
    }
    for (const [name, config] of Object.entries(sessions)) {
      fixture.write(`${name}/1/model.onnx`, identity)
      fixture.write(`${name}/config.pbtxt`, `max_batch_size: 4 instance_group { count: 1 kind: KIND_CPU } ${config}`)
    }
    fixture.write(`${warming}/1/model.js`, holding("warm-up"))
    fixture.write(
      `${warming}/config.pbtxt`,
      `max_batch_size: 2 ${int32}
      model_warmup { name: "zeros" batch_size: 2 inputs { key: "X" value { data_type: TYPE_INT32 dims: 1 zero_data: true } } }`,
    )
    fixture.write("counts/1/model.js", counts)
    fixture.write("counts/config.pbtxt", `max_batch_size: 2 ${int32} model_transaction_policy { decoupled: true }`)
    fixture.write("cached/1/model.js", executions)
    fixture.write("cached/config.pbtxt", `max_batch_size: 4 ${int32} response_cache { enable: true }`)
    for (const [name, file, config] of ragging) {
      fixture.write(`${name}/1/model.onnx`, file)
      fixture.write(`${name}/config.pbtxt`, config.join("\n"))
    }
    const load = [...Object.keys(held), ...Object.keys(sessions), ...ragging.map(([name]) => name), "counts", "cached"]
    return Repository.layer({ directories: [fixture.path], control: "explicit", load })
  }),
)
