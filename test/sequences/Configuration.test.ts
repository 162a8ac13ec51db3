/** Configurations with sequences as callers see them, and those that a load refuses, over HTTP and gRPC. */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { model, node, value } from "../fixtures/onnx.ts"
import * as sequences from "../fixtures/sequences.ts"
import * as RepositoryClient from "../RepositoryClient.ts"
import { http } from "./SequenceCalls.ts"
import { serveFiles } from "./SequenceServer.ts"

const accumulator = { "1/model.onnx": sequences.accumulator(true) }
const flags = { "1/model.onnx": sequences.flags(true) }

/** START with two elements for each row. */
const wideControl = {
  "1/model.onnx": model({
    inputs: [value("INPUT", "INT32", ["n", 1]), value("START", "INT32", ["n", 2]), value("READY", "INT32", ["n", 1])],
    outputs: [value("OUTPUT", "INT32", ["n", 1])],
    nodes: [
      node("ReduceMax", ["START"], ["start"], { axes: [1], keepdims: 1 }),
      node("Add", ["INPUT", "start"], ["sum"]),
      node("Mul", ["sum", "READY"], ["OUTPUT"]),
    ],
  }),
}

const { startAndReady } = sequences

const initial = (fields: string) => sequences.config(sequences.state(`initial_state { ${fields} }`))

const control = (name: string) => `unable to load model 'm', sequence control '${name}'`

const ofState = "for state input 'INPUT_STATE'"

/** Label, configuration, files, text. */
const refusals: ReadonlyArray<readonly [string, string, Readonly<Record<string, Uint8Array>>, string]> = [
  [
    "L1.2.strategy-path@both",
    `${sequences.config(startAndReady)} parameters { key: "TRITON_BATCH_STRATEGY_PATH" value { string_value: "x" } }`,
    flags,
    "TRITON_BATCH_STRATEGY_PATH cannot be specified with sequence batcher, using default batching strategy",
  ],
  [
    "L1.2.control-absent@both",
    sequences.config(startAndReady.replace('"START"', '"BEGIN"')),
    flags,
    "configuration specified sequence control 'BEGIN', but model does not provide that input",
  ],
  [
    "L1.2.control-dims@both",
    sequences.config(startAndReady),
    wideControl,
    `${control("START")} in model has dims [2] but dims [1] is expected`,
  ],
  [
    "L1.2.control-datatype@both",
    sequences.config(startAndReady.replace("int32_false_true", "fp32_false_true")),
    flags,
    `${control("START")}, the model expects data-type INT32 but the model configuration specifies data-type TYPE_FP32`,
  ],
  [
    "L1.2.input-count@both",
    sequences.config(startAndReady.slice(startAndReady.indexOf("control_input", 1))),
    flags,
    "unable to load model 'm', configuration expects 2 inputs, model provides 3",
  ],
  [
    "L2.initial-count@both",
    sequences.config(sequences.state("initial_state {} initial_state {}")),
    accumulator,
    `initial_state field ${ofState} must contain exactly one or zero element. Found '2' elements.`,
  ],
  [
    "L2.initial-type@both",
    initial('name: "i" data_type: TYPE_FP32 dims: 1 zero_data: true'),
    accumulator,
    "The data type used for 'initial_state' field of state 'INPUT_STATE' does not match the state data type.",
  ],
  [
    "L2.initial-name@both",
    initial("data_type: TYPE_INT32 dims: 1 zero_data: true"),
    accumulator,
    `Field 'name' must be set when using initial_state ${ofState}.`,
  ],
  [
    "L2.initial-rank@both",
    initial('name: "i" data_type: TYPE_INT32 dims: [1, 1] zero_data: true'),
    accumulator,
    `Number of dimensions in 'initial_state' doesn't match the size of 'state' dimensions ${ofState}. 2 != 1`,
  ],
  [
    "L2.initial-variable@both",
    initial('name: "i" data_type: TYPE_INT32 dims: -1 zero_data: true'),
    accumulator,
    "'initial_state' field for state input name 'INPUT_STATE' contains variable dimensions.",
  ],
  [
    "L2.initial-dim@both",
    initial('name: "i" data_type: TYPE_INT32 dims: 2 zero_data: true'),
    accumulator,
    "'initial_state' dim for input name 'INPUT_STATE' doesn't match 'state' dim description. 2 != 1",
  ],
  [
    "L2.initial-short@both",
    initial('name: "i" data_type: TYPE_INT32 dims: 1 data_file: "short"'),
    { ...accumulator, "initial_state/short": Uint8Array.of(1, 2) },
    "initial_state setting expects 4 bytes, but the data provided from shortonly has 2 bytes.",
  ],
  [
    "L2.initial-data@both",
    initial('name: "i" data_type: TYPE_INT32 dims: 1'),
    accumulator,
    "initial_state setting expects state'INPUT_STATE' to have state_data set",
  ],
  [
    "L2.initial-file@both",
    initial('name: "i" data_type: TYPE_INT32 dims: 1 data_file: "absent"'),
    accumulator,
    "failed to open text file for read ",
  ],
  [
    "L2.twice@both",
    sequences.config(sequences.state() + sequences.state()),
    accumulator,
    "State input name 'INPUT_STATE' specified more than once.",
  ],
  [
    "L2.output-absent@both",
    sequences.config(sequences.state().replace("OUTPUT_STATE", "NO_STATE")),
    accumulator,
    "NO_STATE",
  ],
]

const served = (config: string, files: Readonly<Record<string, Uint8Array>>) =>
  serveFiles(
    {
      "m/config.pbtxt": config,
      ...Object.fromEntries(Object.entries(files).map(([name, content]) => [`m/${name}`, content])),
    },
    { repository: { control: "explicit" } },
  )

describe.each(["HTTP", "gRPC"] as const)("over %s", (transport) => {
  it.live.each(refusals)("a load refuses what is wrong: %s", ([, config, files, text]) =>
    Effect.gen(function* () {
      const client = yield* RepositoryClient.make[transport](yield* served(config, files))
      const failed = yield* Effect.promise(() => client.load("m"))
      expect(failed).toContain("load failed for model 'm': version 1 is at UNAVAILABLE state: ")
      expect(failed).toContain(text)
    }),
  )

  it.live("the configuration shows defaults (L1.1.idle-default@both, L1.1.preferred-default@both)", () =>
    Effect.gen(function* () {
      const ports = yield* served(sequences.config(`oldest {} ${startAndReady}`, { idle: 0 }), flags)
      const client = yield* RepositoryClient.make[transport](ports)
      expect(yield* Effect.promise(() => client.load("m"))).toBeUndefined()
      expect(yield* Effect.promise(() => client.config("m"))).toMatchObject({
        input: [{ name: "INPUT" }],
        sequence_batching: { oldest: { preferred_batch_size: [4] } },
      })
      const { text } = yield* http(ports, "/v2/models/m/config")
      expect(JSON.parse(text).sequence_batching.max_sequence_idle_microseconds).toBe(1_000_000)
    }),
  )

  it.live("settings of the memory of a state have no effect (L2.memory@both)", () =>
    Effect.gen(function* () {
      const settings = sequences.state("use_same_buffer_for_input_output: true use_growable_memory: true")
      const client = yield* RepositoryClient.make[transport](yield* served(sequences.config(settings), accumulator))
      expect(yield* Effect.promise(() => client.load("m"))).toBeUndefined()
    }),
  )
})

it.live(
  "metadata lists no controls, and the server has the extension (L1.1.controls-no-inputs@HTTP, L1.3.extension@HTTP)",
  () =>
    Effect.gen(function* () {
      const files = { "m/config.pbtxt": sequences.config(startAndReady), "m/1/model.onnx": sequences.flags(true) }
      const ports = yield* serveFiles(files)
      const { text } = yield* http(ports, "/v2/models/m")
      expect(JSON.parse(text).inputs.map(({ name }: { readonly name: string }) => name)).toEqual(["INPUT"])
      expect(JSON.parse((yield* http(ports, "/v2")).text).extensions).toContain("sequence")
    }),
)
