/**
 * A repository of models that wait and share batches by their configuration: scripts that a test holds (Held.ts), which are
 * those of Models.ts where they have the same name, and ONNX files. What is no question of more than one request is in
 * StoredModels.ts.
 */
import { Effect, Layer } from "effect"
import { Repository } from "@nereid/repository"
import { model, node, value } from "../fixtures/onnx.ts"
import { repository } from "../fixtures/repository.ts"
import { holding } from "./Held.ts"

const io = (more: string) => ["input", "output"].map((kind) => `${kind} { name: "X" ${more} }`).join("\n")

const int32 = io("data_type: TYPE_INT32 dims: 1")

const variable = io("data_type: TYPE_INT32 dims: -1")

const ragged = variable.replace("-1", "-1 allow_ragged_batch: true")

const batching = (...more: ReadonlyArray<string>) => `dynamic_batching { ${more.join("\n")} }`

const policy = (more: string) => `default_queue_policy { ${more} }`

/** Longer than any test: what is answered has not waited for it. */
const forever = "max_queue_delay_microseconds: 600000000"

/** Scripts that answer X with X, by their configurations. */
const held: Readonly<Record<string, string>> = {
  levels: `max_batch_size: 1 ${int32} ${batching(
    "priority_levels: 4 default_priority_level: 2",
    policy("max_queue_size: 4 default_timeout_microseconds: 20000000 allow_timeout_override: true"),
    "priority_queue_policy { key: 1 value { max_queue_size: 1 } }",
    "priority_queue_policy [{ key: 4 value { default_timeout_microseconds: 1000, allow_timeout_override: true } }]",
  )}`,
  delays: `max_batch_size: 1 ${int32} ${batching(
    policy("timeout_action: DELAY default_timeout_microseconds: 20000000 allow_timeout_override: true"),
  )}`,
  ordered: `max_batch_size: 1 ${int32} ${batching("preserve_ordering: true")} instance_group { count: 2 kind: KIND_CPU }`,
  bounded: `max_batch_size: 1 ${int32} ${batching(policy("max_queue_size: 1"))}`,
  fills: `max_batch_size: 4 ${int32} ${batching()}`,
  fills_by_level: `max_batch_size: 2 ${int32} ${batching("priority_levels: 2 default_priority_level: 2")}`,
  prefers: `max_batch_size: 8 ${int32} ${batching("preferred_batch_size: [ 2, 4 ]", forever)}`,
  hurries: `max_batch_size: 8 ${int32} ${batching("preferred_batch_size: 4 max_queue_delay_microseconds: 1000")}`,
  shapes: `max_batch_size: 4 ${variable} ${batching()}`,
  shapes_ragged: `max_batch_size: 4 ${ragged} ${batching()}`,
  alone: `max_batch_size: 4 ${int32}`,
}

/** ONNX files that answer X with X as Y, of one session. */
const sessions: Readonly<Record<string, string>> = {
  onnx_gathers: batching("preferred_batch_size: 2", forever),
  onnx_alone: 'input { name: "X" data_type: TYPE_INT32 dims: -1 } output { name: "Y" data_type: TYPE_INT32 dims: -1 }',
}

const identity = model({
  inputs: [value("X", "INT32", ["n", "k"])],
  outputs: [value("Y", "INT32", ["n", "k"])],
  nodes: [node("Identity", ["X"], ["Y"])],
})

export const layer = Layer.unwrap(
  Effect.map(repository, (fixture) => {
    for (const [name, config] of Object.entries(held)) {
      fixture.write(`${name}/1/model.js`, holding)
      fixture.write(`${name}/config.pbtxt`, config)
    }
    for (const [name, config] of Object.entries(sessions)) {
      fixture.write(`${name}/1/model.onnx`, identity)
      fixture.write(`${name}/config.pbtxt`, `max_batch_size: 4 instance_group { count: 1 kind: KIND_CPU } ${config}`)
    }
    return Repository.layer({ directories: [fixture.path] })
  }),
)
