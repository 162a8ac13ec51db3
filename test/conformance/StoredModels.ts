/**
 * The repository under test: a directory of models, built node by node, with and without configurations. As in
 * Models.ts, outputs follow from inputs. The index reports the errors of broken models.
 */
import { answers } from "./StoredAnswers.ts"
import { Effect, Layer } from "effect"
import { Repository } from "@nereid/repository"
import { addSub, type ElementTypeName, initializer, model, node, nonZero, ragged, value } from "../fixtures/onnx.ts"
import { plus, repository, type RepositoryFixture } from "../fixtures/repository.ts"
import { configs } from "./StoredConfigs.ts"
import { echo, fp32, identity, io, one, step, type Stored, tensors } from "./StoredParts.ts"
import { storedEnsembles } from "./StoredEnsembles.ts"
import { broken } from "./StoredRefusals.ts"
import { scheduled } from "./StoredScheduling.ts"

/** Those that ONNX Runtime has for Node, but for strings, which it cannot add. */
export const numeric = [
  "BOOL",
  "UINT8",
  "UINT16",
  "UINT32",
  "UINT64",
  "INT8",
  "INT16",
  "INT32",
  "INT64",
  "FP16",
  "FP32",
  "FP64",
] as const satisfies ReadonlyArray<ElementTypeName>

const ready: ReadonlyArray<Stored> = [
  ...numeric.map((datatype) => ({
    name: `add_sub_${datatype.toLowerCase()}`,
    file: addSub(datatype, ["n", 2]),
    config: one,
  })),
  { name: "add_sub_bytes", file: addSub("BYTES", ["n", 2]), config: one },
  { name: "bare", file: plus(1) },
  {
    name: "unlike",
    file: identity("INT64", ["n", 3]),
    config: `version_policy { all {} } ${one}`,
    more: { "2/model.onnx": identity("FP32", [2]) },
  },
  { name: "fixed", file: identity("FP32", [2, 3]), config: one },
  { name: "variable", file: identity("INT64", [2, "n", -1]), config: one },
  { name: "rows", file: identity("FP32", ["n", "k"]), config: one },
  { name: "strings", file: identity("BYTES", ["n", "k"]), config: one },
  { name: "scalar", file: identity("INT32", []), config: one },
  { name: "scalars", file: identity("FP64", ["n"]), config: one },
  { name: "positions", file: nonZero(), config: one },
  {
    name: "reshaped",
    file: identity("FP32", ["n", 2, 2, "k"]),
    config:
      `max_batch_size: 4 ${one}` +
      io("input", "X", "data_type: TYPE_FP32 dims: [ 4, -1 ] reshape { shape: [ 2, 2, -1 ] }") +
      io("output", "Y", "data_type: TYPE_FP32 dims: [ 1, 4, -1 ] reshape { shape: [ 2, 2, -1 ] }"),
  },
  {
    name: "reshaped_to_nothing",
    file: identity("UINT8", ["n"]),
    config:
      `max_batch_size: 4 ${one}` +
      io("input", "X", "data_type: TYPE_UINT8 dims: 1 reshape { shape: [ ] }") +
      io("output", "Y", "data_type: TYPE_UINT8 dims: [ 1, 1 ] reshape { shape: [ ] }"),
  },
  {
    name: "labelled",
    file: identity("FP32", ["n", 3]),
    config: `${one}${io("input", "X", "")}${io("output", "Y", 'label_filename: "labels.txt"')}max_batch_size: 2`,
    more: { "labels.txt": "cat\r\ndog\nnewt of the pond\n\n" },
  },
  {
    name: "ragged",
    file: ragged(),
    config:
      `max_batch_size: 4 dynamic_batching {} ${one}` +
      io("input", "X", "data_type: TYPE_FP32 dims: -1 allow_ragged_batch: true") +
      io("output", "Y", "data_type: TYPE_FP32 dims: -1") +
      `batch_input { kind: BATCH_ACCUMULATED_ELEMENT_COUNT target_name: "ENDS" data_type: TYPE_INT32 source_input: "X" }
       batch_output { kind: BATCH_SCATTER_WITH_INPUT_SHAPE target_name: "Y" source_input: "X" }`,
  },
  {
    name: "optional",
    file: model({
      inputs: [value("X", "INT64", ["n", 2]), value("AMOUNT", "INT64", ["n", 2])],
      outputs: [value("Y", "INT64", ["n", 2])],
      nodes: [node("Add", ["X", "AMOUNT"], ["Y"])],
      initializers: [initializer("AMOUNT", "INT64", [1, 2], BigInt64Array.of(10n, 20n))],
    }),
    config:
      `max_batch_size: 4 ${one}` +
      io("input", "X", "data_type: TYPE_INT64 dims: 2") +
      io("input", "AMOUNT", "data_type: TYPE_INT64 dims: 2 optional: true") +
      io("output", "Y", "data_type: TYPE_INT64 dims: 2"),
  },
  {
    name: "told",
    at: "1/model.js",
    file: `let count
    export default {
      initialize: ({ args, modelConfig, logger, metrics }) => {
        logger.verbose("starts")
        count = metrics.counter("told_requests", { description: "Requests" })
        const { name, max_batch_size } = JSON.parse(args.model_config)
        return [args.model_name, args.model_version, args.model_instance_name, args.model_instance_kind,
          args.model_instance_device_id, name, max_batch_size, ...Object.keys(modelConfig.parameters)]
      },
      execute: (requests, args) => requests.map((request) => {
        const { id, rows, inputs: { X }, parameters: { text, truth, whole, fraction, timeout }, requestedOutputs } = request
        request.setParameterUnsafe("seen", true)
        count.add(1)
        const parameters = [text, truth, String(whole), fraction, String(timeout)]
        const told = Buffer.from(JSON.stringify({ id, rows, parameters, requestedOutputs, args }))
        const length = Buffer.alloc(4)
        length.writeUInt32LE(told.length)
        const Y = new X.constructor("BYTES", [1, 1], Buffer.concat([length, told]))
        return { Y, Z: Y }
      }),
    }`,
    config:
      `max_batch_size: 4 instance_group { name: "told_0" } parameters { key: "by" value { string_value: "1" } }` +
      io("input", "X", "data_type: TYPE_STRING dims: 1") +
      ["Y", "Z"].map((name) => io("output", name, "data_type: TYPE_STRING dims: 1")).join(""),
  },
  {
    name: "failing",
    at: "1/model.js",
    file: `const failure = (tag) => Object.assign(new Error("as it was asked"), tag === undefined ? {} : { _tag: tag })
      export default { execute: async ([{ inputs: { X } }]) => {
        const [how, tag] = Buffer.from(X.data[0]).toString().split(" ")
        if (how === "throw") throw failure(tag)
        return how === "return" ? [failure(tag)] : []
      } }`,
    config: io("input", "X", "data_type: TYPE_STRING dims: 1") + io("output", "Y", "data_type: TYPE_STRING dims: 1"),
  },
  {
    name: "asking",
    at: "1/model.js",
    file: `export default {
      initialize: ({ models }) => models,
      execute: (requests, models) => Promise.all(requests.map(({ inputs, run }) => run(models.inferBatch("bare", inputs)))),
    }`,
    config: tensors(fp32),
  },
  {
    name: "script",
    at: "1/model.js",
    file: echo,
    config: `max_batch_size: 4 ${io("input", "X", "data_type: TYPE_STRING dims: -1")}${io("output", "Y", "data_type: TYPE_STRING dims: -1")}`,
  },
]

/** Without files: a version of an ensemble is an empty directory. */
const ensemble = (name: string, maxBatchSize: number, tensors: string, ...steps: ReadonlyArray<string>): Stored => ({
  name,
  file: "",
  at: "1/.keep",
  config: `platform: "ensemble" max_batch_size: ${maxBatchSize}\n${tensors}ensemble_scheduling { ${steps.join(" ")} }`,
})

const singles = io("input", "X", fp32) + io("output", "Y", fp32)
const pairs = "data_type: TYPE_INT32 dims: 2"

const ensembles: ReadonlyArray<Stored> = [
  {
    name: "plus_optional",
    at: "1/model.js",
    file: `export default { execute: (requests) => requests.map(({ inputs: { X, AMOUNT } }) => {
      const sums = X.data.map((x, row) => x + (AMOUNT?.data[row] ?? 100))
      return { Y: new X.constructor("FP32", X.shape, new Uint8Array(sums.buffer)) }
    }) }`,
    config: `max_batch_size: 4 ${singles}${io("input", "AMOUNT", `${fp32} optional: true`)}`,
  },
  {
    name: "counting",
    at: "1/model.js",
    file: `export default { execute: function* ({ inputs: { X } }) {
      for (let i = 1; i <= X.data[0]; i++) if (i > 3) throw new Error("it is enough"); else yield { Y: new X.constructor("FP32", [1, 1], new Uint8Array(Float32Array.of(i).buffer)) }
    } }`,
    config: `max_batch_size: 4 model_transaction_policy { decoupled: true } ${singles}`,
  },
  ensemble(
    "in_steps",
    4,
    singles,
    step("bare", { X: "between" }, { Y: "Y" }),
    step("bare", { X: "X" }, { Y: "between" }),
  ),
  ensemble(
    "of_ensembles",
    4,
    singles,
    step("in_steps", { X: "X" }, { Y: "T" }),
    step("in_steps", { X: "T" }, { Y: "Y" }),
  ),
  ensemble(
    "diamond",
    4,
    io("input", "A", pairs) + io("input", "B", pairs) + io("output", "TWICE_A", pairs) + io("output", "TWICE_B", pairs),
    step("add_sub_int32", { A: "A", B: "B" }, { SUM: "sum", DIFFERENCE: "difference" }),
    step("add_sub_int32", { A: "sum", B: "difference" }, { SUM: "TWICE_A", DIFFERENCE: "TWICE_B" }),
  ),
  ensemble(
    "optional_step",
    4,
    singles + io("input", "Z", `${fp32} optional: true`),
    step("plus_optional", { X: "X", AMOUNT: "Z" }, { Y: "Y" }),
  ),
  ensemble(
    "without_batch",
    0,
    io("input", "X", "data_type: TYPE_FP32 dims: [ 1, 2, 3 ]") +
      io("output", "Y", "data_type: TYPE_FP32 dims: [ 1, 2, 3 ]"),
    step("pictures", { X: "X" }, { Y: "Y" }),
  ),
  { name: "pictures", file: identity("FP32", ["n", 2, 3]), config: one },
  ensemble(
    "open_shape",
    0,
    io("input", "X", "data_type: TYPE_FP32 dims: [ -1, -1 ]") +
      io("output", "Y", "data_type: TYPE_FP32 dims: [ -1, -1 ]"),
    step("fixed", { X: "X" }, { Y: "Y" }),
  ),
  ensemble(
    "streaming_last",
    4,
    singles,
    step("bare", { X: "X" }, { Y: "i" }),
    step("counting", { X: "i" }, { Y: "Y" }),
  ),
  ensemble("streaming", 4, singles, step("counting", { X: "X" }, { Y: "i" }), step("bare", { X: "i" }, { Y: "Y" })),
]

/** X FP32[1] → Y = X and the version, of the versions 1, 2, 3 and 10. */
export const versioned: Readonly<Record<string, string>> = {
  latest: "",
  latest_two: "version_policy { latest { num_versions: 2 } }",
  all_versions: "version_policy: { all {} }",
  specific: "version_policy { specific { versions: [ 3, 1, 7 ] } }",
}

export const versions = [1, 2, 3, 10]

/** The models that load, without those that have several versions. */
export const stored: ReadonlyArray<Stored> = [...ready, ...answers, ...ensembles, ...storedEnsembles, ...scheduled]

const write = (fixture: RepositoryFixture): void => {
  for (const { name, file, at = "1/model.onnx", config, more = {} } of stored) {
    fixture.write(`${name}/${at}`, file)
    if (config !== undefined) fixture.write(`${name}/config.pbtxt`, config)
    for (const [path, content] of Object.entries(more)) fixture.write(`${name}/${path}`, content)
  }
  for (const [name, policy] of Object.entries(versioned)) {
    for (const version of versions) fixture.write(`${name}/${version}/model.onnx`, addingOne(version))
    fixture.write(`${name}/config.pbtxt`, policy + one)
  }
  for (const [name, { config, files = { "1/model.onnx": plus(1) } }] of Object.entries(broken)) {
    fixture.write(`${name}/config.pbtxt`, config)
    for (const [file, content] of Object.entries(files)) fixture.write(`${name}/${file}`, content)
  }
  for (const [name, { config, files = { "1/model.js": echo } }] of Object.entries(configs)) {
    fixture.write(`${name}/config.pbtxt`, config)
    for (const [file, content] of Object.entries(files)) fixture.write(`${name}/${file}`, content)
  }
  fixture.adding("idle", 1, 1)
}

/** X FP32[1] → Y, without a batch dimension. */
const addingOne = (amount: number): Uint8Array =>
  model({
    inputs: [value("X", "FP32", [1])],
    outputs: [value("Y", "FP32", [1])],
    nodes: [node("Add", ["X", "AMOUNT"], ["Y"])],
    initializers: [initializer("AMOUNT", "FP32", [1], Float32Array.of(amount))],
  })

const load = [...stored.map(({ name }) => name), ...[versioned, broken, configs].flatMap((table) => Object.keys(table))]

/** All but `idle` are loaded at the start; callers may load and unload. */
export const layer = Layer.unwrap(
  Effect.map(repository, (fixture) => {
    write(fixture)
    return Repository.layer({ directories: [fixture.path], control: "explicit", load, exitOnError: false })
  }),
)
