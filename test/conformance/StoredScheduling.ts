/**
 * Models of the repository of StoredModels.ts with execution settings: decoupled models, models with warm-ups, and
 * broken ones. StoredQueues.ts has the models for several requests.
 */
import type { BrokenModel } from "./BrokenModel.ts"
import { initializer, model, node, ragged, value } from "../fixtures/onnx.ts"
import { plus } from "../fixtures/repository.ts"
import { noWayDown } from "./Models.ts"
import { fp32, io, one, type Stored } from "./StoredParts.ts"

/** As that of Models.ts, from 1 up to X. */
const counts = `export default {
  execute: function* ({ inputs: { X } }) {
    const [to] = X.data
    for (let i = 1; i <= Math.abs(to); i++) {
      yield { Y: new X.constructor("INT32", [1], new Uint8Array(Int32Array.of(i).buffer)) }
    }
    if (to < 0) throw Object.assign(new Error("${noWayDown}"), { _tag: "InvalidRequest" })
  },
}`

/**
 * Returns a record of its executions before the first request: the rows of each, and elements that are not random.
 */
const warmed = `
const seen = []
const decoder = new TextDecoder()
export default {
  execute: (requests) => {
    if (requests.every(({ id }) => id === "warm-up")) {
      const shown = requests.map(({ inputs: { X, TEXT } }) => {
        const texts = TEXT.data.map((text) => decoder.decode(text))
        return X.shape + (X.shape[0] === 4 ? "" : ": " + X.data + " '" + texts.join("' '") + "'")
      })
      seen.push(shown.join(" and "))
    }
    const text = Buffer.from(seen.join("; "))
    const row = Buffer.concat([Buffer.from(Uint32Array.of(text.length).buffer), text])
    return requests.map(({ rows, inputs: { X } }) => {
      const bytes = Buffer.concat(Array.from({ length: rows }, () => row))
      return { SEEN: new X.constructor("BYTES", [rows, 1], new Uint8Array(bytes)) }
    })
  },
}`

const warmUp = (name: string, more: string, data: string | readonly [string, string]) => {
  const [x, text] = typeof data === "string" ? [data, data] : data
  return `model_warmup {
    name: "${name}" ${more}
    inputs { key: "X" value { data_type: TYPE_INT32 dims: [ 2 ] ${x} } }
    inputs { key: "TEXT" value { data_type: TYPE_STRING dims: 1 ${text} } }
  }\n`
}

const text = (content: string) =>
  Buffer.concat([Buffer.from(Uint32Array.of(content.length).buffer), Buffer.from(content)])

const files = { "warmup/x": new Uint8Array(Int32Array.of(5, 7).buffer), "warmup/of it/text": text("a b") }

const scripts: ReadonlyArray<Stored> = [
  {
    name: "apart",
    at: "1/model.js",
    file: `export default { execute: function* ({ inputs: { X } }) {
      yield { Y: X }
      for (const x of X.data) yield { Y: new X.constructor("INT32", [1, 1], new Uint8Array(Int32Array.of(x).buffer)) }
    } }`,
    config:
      "max_batch_size: 4 model_transaction_policy { decoupled: true }\n" +
      io("input", "X", "data_type: TYPE_INT32 dims: 1") +
      io("output", "Y", "data_type: TYPE_INT32 dims: 1"),
  },
  {
    name: "counts",
    at: "1/model.js",
    file: counts,
    config:
      "model_transaction_policy { decoupled: true }\n" +
      io("input", "X", "data_type: TYPE_INT32 dims: 1") +
      io("output", "Y", "data_type: TYPE_INT32 dims: 1"),
  },
  {
    name: "warmed",
    at: "1/model.js",
    file: warmed,
    config:
      "max_batch_size: 4 dynamic_batching { max_queue_delay_microseconds: 1000 }\n" +
      io("input", "X", "data_type: TYPE_INT32 dims: 2") +
      io("input", "TEXT", "data_type: TYPE_STRING dims: 1") +
      io("output", "SEEN", "data_type: TYPE_STRING dims: 1") +
      warmUp("zeros", "batch_size: 1", "zero_data: true") +
      warmUp("files", "batch_size: 3 count: 2", ['input_data_file: "x"', 'input_data_file: "of it/text"']) +
      warmUp("random", "batch_size: 4", "random_data: true"),
    more: files,
  },
  {
    name: "policies",
    at: "1/model.js",
    file: "export default { execute: (requests) => requests.map(({ inputs: { X } }) => ({ Y: X })) }",
    config: `max_batch_size: 4 response_cache { enable: true }
      ${io("input", "X", fp32)}${io("output", "Y", fp32)}
      dynamic_batching {
        preferred_batch_size: [ 2, 4 ] max_queue_delay_microseconds: 100 priority_levels: 3 default_priority_level: 2
        default_queue_policy { timeout_action: DELAY default_timeout_microseconds: 5 allow_timeout_override: true max_queue_size: 7 }
        priority_queue_policy { key: 1 value { timeout_action: REJECT max_queue_size: 1 } }
      }`,
  },
]

export const scheduled: ReadonlyArray<Stored> = scripts

const batching = (more: string): BrokenModel["config"] => `max_batch_size: 4 dynamic_batching { ${more} }`

const script = (execute: string) => ({ "1/model.js": `export default { execute: ${execute} }` })

const tensors = `max_batch_size: 4 ${io("input", "X", fp32)}${io("output", "Y", fp32)}`

const warmUpConfig = (data: string, more = "batch_size: 1", input = "X") =>
  `${one}model_warmup { name: "w" ${more} inputs { key: "${input}" value { ${data} } } }`

/** Of the file of `ragged` in fixtures: Y is flat, END has a number for each request. */
const lines = (...more: ReadonlyArray<string>) => ({
  config:
    `max_batch_size: 4 dynamic_batching {} ${one}` +
    io("input", "X", "data_type: TYPE_FP32 dims: -1 allow_ragged_batch: true") +
    io("output", "Y", "data_type: TYPE_FP32 dims: -1") +
    more.join("\n"),
  files: { "1/model.onnx": ragged() },
})

const made = (more: string, kind = "BATCH_ACCUMULATED_ELEMENT_COUNT") =>
  `batch_input { kind: ${kind} target_name: "ENDS" ${more} }`

const ends = made('data_type: TYPE_INT32 source_input: "X"')

const cut = (more: string) => `batch_output { kind: BATCH_SCATTER_WITH_INPUT_SHAPE ${more} }`

const scatter = cut('target_name: "Y" source_input: "X"')

/** Z has a value in the file. */
const optionalSource = model({
  inputs: [value("X", "FP32", ["elements"]), value("Z", "FP32", ["n", 1]), value("ENDS", "INT32", ["requests"])],
  outputs: [value("Y", "FP32", ["elements"])],
  nodes: [node("Identity", ["X"], ["Y"])],
  initializers: [initializer("Z", "FP32", [1, 1], Float32Array.of(1))],
})

/** Prefix of errors about a request that has no id. */
const unnamed = "[request id: <id_unknown>] "

const whole = { isWhole: true, status: "Invalid argument" } as const

export const misscheduled: Readonly<Record<string, BrokenModel>> = {
  no_default_level: {
    config: batching("priority_levels: 2"),
    reason: "default priority level must be in range [1, 2] for no_default_level",
    proves: ["A11.batching.default-level.range"],
    isUnreadable: true,
  },
  level_of_policy: {
    config: batching("priority_levels: 2 default_priority_level: 1 priority_queue_policy { key: 3 value {} }"),
    reason: "priority queue policy must have priority level in range [1, 2] for level_of_policy",
    proves: ["A11.batching.policy.level"],
    isUnreadable: true,
  },
  ordered_delay: {
    config: batching(
      "preserve_ordering: true default_queue_policy { timeout_action: DELAY default_timeout_microseconds: 1 }",
    ),
    reason: "Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true for ordered_delay",
    proves: ["A11.batching.ordering.levels"],
    isUnreadable: true,
  },
  ordered_delay_of_level: {
    config: batching(`preserve_ordering: true priority_levels: 1 default_priority_level: 1
      priority_queue_policy { key: 1 value { timeout_action: DELAY default_timeout_microseconds: 1 } }`),
    reason:
      "Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true for ordered_delay_of_level",
    isUnreadable: true,
  },
  cached_sequences: {
    config: "max_batch_size: 4 sequence_batching {} response_cache { enable: true }",
    reason:
      "Response Cache does not currently support model cached_sequences with sequence batching scheduler. Please disable the response cache.",
    proves: ["A11.cache.decoupled"],
    isUnreadable: true,
  },
  cached_responses: {
    config: `${tensors} model_transaction_policy { decoupled: true } response_cache { enable: true }`,
    files: script("function* () {}"),
    reason:
      "Response Cache does not currently support model cached_responses with 'decoupled' transaction policy. Please disable the response cache.",
    proves: ["A11.cache.decoupled"],
    isUnreadable: true,
  },
  made_for_script: {
    config: `${tensors} ${ends}`,
    files: script("() => []"),
    reason: "batch_input and batch_output are not supported for a script",
  },
  not_made: {
    ...lines(scatter),
    reason: "unable to load model 'not_made', the model expects 2 inputs but the model configuration specifies 1",
  },
  made_unasked: {
    ...lines(ends, ends.replace("ENDS", "STARTS"), scatter),
    reason: "unexpected inference input 'STARTS', allowed inputs are: X, ENDS",
  },
  made_of_nothing: {
    ...lines(made("data_type: TYPE_INT32"), scatter),
    reason: "batch input kind 'BATCH_ACCUMULATED_ELEMENT_COUNT' expects 1 source input, got 0",
  },
  made_of_two: {
    ...lines(made('data_type: TYPE_INT32 source_input: [ "X", "X" ]', "BATCH_ITEM_SHAPE"), scatter),
    reason: "batch input kind 'BATCH_ITEM_SHAPE' expects 1 source input, got 2",
  },
  made_of_unknown: {
    ...lines(made('data_type: TYPE_INT32 source_input: "Q"'), scatter),
    reason: "unknown source input name 'Q'",
  },
  made_as_texts: {
    ...lines(made('data_type: TYPE_STRING source_input: "X"'), scatter),
    reason: "batch input data type must be TYPE_INT32 or TYPE_FP32",
  },
  made_of_other_type: {
    ...lines(made('data_type: TYPE_FP32 source_input: "X"'), scatter),
    reason:
      "model 'made_of_other_type', tensor 'ENDS': the model expects datatype TYPE_INT32 but the model configuration specifies TYPE_FP32",
  },
  made_in_place: {
    ...lines(made('data_type: TYPE_FP32 source_input: "X"').replace("ENDS", "X"), scatter),
    reason: "batchInputs.X has the name of a declared input",
  },
  made_of_optional: {
    config:
      `max_batch_size: 4 ${one}` +
      io("input", "X", "data_type: TYPE_FP32 dims: -1 allow_ragged_batch: true") +
      io("input", "Z", `${fp32} optional: true`) +
      io("output", "Y", "data_type: TYPE_FP32 dims: -1") +
      made('data_type: TYPE_INT32 source_input: "Z"') +
      scatter,
    files: { "1/model.onnx": optionalSource },
    reason: 'batchInputs.ENDS names the optional input "Z"',
  },
  made_without_batch: {
    config: one + io("input", "X", "data_type: TYPE_FP32 dims: -1") + io("output", "Y", fp32) + ends,
    files: { "1/model.onnx": ragged() },
    reason: "batch_input and batch_output require batching: 'max_batch_size' is 0",
  },
  not_cut: {
    ...lines(ends),
    reason: "model 'not_cut', tensor 'Y': the model expects 1 dimensions (shape [-1])",
  },
  cut_unknown: { ...lines(ends, cut('target_name: "Q" source_input: "X"')), reason: "unknown target output name 'Q'" },
  cut_twice: {
    ...lines(ends, scatter, scatter),
    reason: "target output name 'Y' can only be specified once",
  },
  cut_like_nothing: {
    ...lines(ends, cut('target_name: "Y"')),
    reason: "batch output kind 'BATCH_SCATTER_WITH_INPUT_SHAPE' expects 1 source input, got 0",
  },
  cut_like_unknown: {
    ...lines(ends, cut('target_name: "Y" source_input: "Q"')),
    reason: "unknown source input name 'Q'",
  },
  warm_up_without_file: {
    config: warmUpConfig(`${fp32} input_data_file: "no"`),
    reason: /failed to open text file for read [^ ]*\/warm_up_without_file\/warmup\/no: No such file or directory/,
    status: "Internal",
  },
  warm_up_elsewhere: {
    config: warmUpConfig(`${fp32} input_data_file: "../config.pbtxt"`),
    reason: "file '../config.pbtxt' is not below ",
    status: "Internal",
  },
  warm_up_of_other_size: {
    config: warmUpConfig(`${fp32} input_data_file: "x"`),
    files: { "1/model.onnx": plus(1), "warmup/x": "123" },
    reason: `${unnamed}warmup setting expects 4 bytes, but the data provided from xonly has 3 bytes`,
    ...whole,
  },
  warm_up_without_data: {
    config: warmUpConfig(fp32),
    reason: `${unnamed}warmup setting expects input 'X' to have input_data_type set`,
    ...whole,
  },
  warm_up_without_type: {
    config: warmUpConfig("dims: 1 zero_data: true"),
    reason: `${unnamed}inference input 'X' data-type is '<invalid>', but model 'warm_up_without_type' expects 'FP32'`,
    ...whole,
  },
  warm_up_of_any_size: {
    config: warmUpConfig("data_type: TYPE_FP32 dims: -1 zero_data: true"),
    reason: "warmup setting expects all variable-size dimensions are specified for input 'X'",
    ...whole,
  },
  warm_up_of_other_dims: {
    config: warmUpConfig("data_type: TYPE_FP32 dims: 7 zero_data: true"),
    reason: `${unnamed}unexpected shape for input 'X' for model 'warm_up_of_other_dims'. Expected [-1,1], got [1,7]. NOTE: `,
    status: "Invalid argument",
  },
  warm_up_of_other_type: {
    config: warmUpConfig("data_type: TYPE_INT32 dims: 1 zero_data: true"),
    reason: `${unnamed}inference input 'X' data-type is 'INT32', but model 'warm_up_of_other_type' expects 'FP32'`,
    ...whole,
  },
  warm_up_of_nothing: {
    config: `${one}model_warmup { name: "w" batch_size: 1 }`,
    reason: `${unnamed}expected 1 inputs but got 0 inputs for model 'warm_up_of_nothing'. Got input(s) [], but missing required input(s) ['X']. Please provide all required input(s).`,
    ...whole,
  },
  warm_up_too_large: {
    config: warmUpConfig(`${fp32} zero_data: true`, "batch_size: 5"),
    reason: "failed to run warmup sample 'w': batch size 5 for 'warm_up_too_large_0_0', max allowed is 4; ",
    status: "Invalid argument",
  },
  warm_up_that_fails: {
    config: `${tensors} ${warmUpConfig(`${fp32} random_data: true`)}`,
    files: script("() => { throw new Error('no weights') }"),
    reason:
      "failed to run warmup sample 'w': Failed to process the request(s) for model 'warm_up_that_fails_0_0', message: no weights; ",
    ...whole,
    proves: ["A11.warm-up.failure"],
  },
}
