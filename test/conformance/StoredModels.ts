/**
 * The repository that the cases ask: a directory of models, written node by node, with configurations and without. What they
 * answer can be told from what they were asked, as with Models.ts; what is wrong with some of them stands in the index.
 */
import { Effect, Layer } from "effect"
import { Repository } from "@nereid/repository"
import { addSub, type ElementTypeName, initializer, model, node, nonZero, ragged, value } from "../fixtures/onnx.ts"
import { plus, repository, type RepositoryFixture } from "../fixtures/repository.ts"

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

type Dims = ReadonlyArray<number | string>

/** X → Y, unchanged. */
const identity = (datatype: ElementTypeName, dims: Dims): Uint8Array =>
  model({
    inputs: [value("X", datatype, dims)],
    outputs: [value("Y", datatype, dims)],
    nodes: [node("Identity", ["X"], ["Y"])],
  })

/** One session: there are many of them. */
const one = "instance_group { count: 1 kind: KIND_CPU }\n"

const echo = `export default { execute: (requests) => requests.map(({ inputs: { X } }) => ({ Y: X })) }`

const io = (kind: "input" | "output", name: string, more: string) => `${kind} { name: "${name}" ${more} }\n`

interface Stored {
  readonly name: string
  readonly file: Uint8Array | string
  /** Below the directory of the model. Default `1/model.onnx`. */
  readonly at?: string
  /** Undefined for none. */
  readonly config?: string
  readonly more?: { readonly [file: string]: string | Uint8Array }
}

const ready: ReadonlyArray<Stored> = [
  ...numeric.map((datatype) => ({
    name: `add_sub_${datatype.toLowerCase()}`,
    file: addSub(datatype, ["n", 2]),
    config: one,
  })),
  { name: "add_sub_bytes", file: addSub("BYTES", ["n", 2]), config: one },
  { name: "bare", file: plus(1) },
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
    name: "script",
    at: "1/model.js",
    file: echo,
    config: `max_batch_size: 4 ${io("input", "X", "data_type: TYPE_STRING dims: -1")}${io("output", "Y", "data_type: TYPE_STRING dims: -1")}`,
  },
]

/** X FP32[1] → Y = X and the version, of the versions 1, 2, 3 and 10. */
const versioned: Readonly<Record<string, string>> = {
  latest: "",
  latest_two: "version_policy { latest { num_versions: 2 } }",
  all_versions: "version_policy: { all {} }",
  specific: "version_policy { specific { versions: [ 3, 1, 7 ] } }",
}

export const versions = [1, 2, 3, 10]

/** Why they are not there: with the path of the configuration where it is illegal. */
export const broken = {
  absent_field: {
    config: 'max_batch_size: 4\n  nam: "x"\n',
    reason: '/absent_field/config.pbtxt:2:3: unknown field "nam"',
  },
  bad_batch: { config: "max_batch_size: -1", reason: "'max_batch_size' must be non-negative value for bad_batch" },
  bad_dims: {
    config: `${io("input", "X", "data_type: TYPE_FP32 dims: [ 2 ]")}${io("output", "Y", "data_type: TYPE_FP32 dims: [ -1, 1 ]")}`,
    reason:
      "model 'bad_dims', tensor 'X': the model expects 2 dimensions (shape [-1,1]) but the model configuration specifies 1 dimensions (shape [2])",
  },
  bad_name: {
    config: 'name: "other"',
    reason: "unexpected directory name 'bad_name' for model 'other', directory name must equal model name",
  },
  on_gpu: {
    config: "instance_group { kind: KIND_GPU gpus: [ 99 ] }",
    reason: /has kind KIND_GPU but server does not support GPUs|invalid or unsupported gpu id 99/,
  },
  unknown_input: {
    config: `${io("input", "Z", "data_type: TYPE_FP32 dims: -1")}${io("output", "Y", "data_type: TYPE_FP32 dims: -1")}`,
    reason: "unexpected inference input 'Z', allowed inputs are: X",
  },
} as const satisfies Record<string, { readonly config: string; readonly reason: string | RegExp }>

const write = (fixture: RepositoryFixture): void => {
  for (const { name, file, at = "1/model.onnx", config, more = {} } of ready) {
    fixture.write(`${name}/${at}`, file)
    if (config !== undefined) fixture.write(`${name}/config.pbtxt`, config)
    for (const [path, content] of Object.entries(more)) fixture.write(`${name}/${path}`, content)
  }
  for (const [name, policy] of Object.entries(versioned)) {
    for (const version of versions) fixture.write(`${name}/${version}/model.onnx`, addingOne(version))
    fixture.write(`${name}/config.pbtxt`, policy + one)
  }
  for (const [name, { config }] of Object.entries(broken)) fixture.adding(name, 1, 1, config)
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

const load = [...ready.map(({ name }) => name), ...Object.keys(versioned), ...Object.keys(broken)]

/** All but `idle` are loaded at the start; callers may load and unload. */
export const layer = Layer.unwrap(
  Effect.map(repository, (fixture) => {
    write(fixture)
    return Repository.layer({ directories: [fixture.path], control: "explicit", load, exitOnError: false })
  }),
)
