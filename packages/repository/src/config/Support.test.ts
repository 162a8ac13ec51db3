import { Result } from "effect"
import { expect, it } from "vitest"
import * as ConfigText from "./ConfigText.ts"
import * as Support from "./Support.ts"

const parameter = (name: string) => `parameters { key: "${name}" value { string_value: "x" } }`

const both = parameter("memory.enable_memory_arena_shrinkage") + parameter("TRITON_BATCH_STRATEGY_PATH")

it.each([
  ["", []],
  [`backend: "onnxruntime" ${parameter("intra_op_thread_count")}`, []],
  [
    `backend: "onnxruntime" ${both}`,
    ["parameters 'memory.enable_memory_arena_shrinkage'", "parameters 'TRITON_BATCH_STRATEGY_PATH'"],
  ],
  [`backend: "nereid" ${both}`, ["parameters 'TRITON_BATCH_STRATEGY_PATH'"]],
  ["instance_group { host_policy: 'p' } instance_group { host_policy: 'q' }", ["instance_group.host_policy"]],
  ["optimization { input_pinned_memory { enable: false } graph { level: 1 } }", []],
  ["optimization { eager_batching: true }", ["optimization.eager_batching"]],
  ["metric_tags { key: 'team' value: 'a' } metric_tags { key: 'le' value: 'b' }", ["metric_tags 'le'"]],
  [
    "sequence_batching { state { use_same_buffer_for_input_output: true use_growable_memory: true } }",
    ["sequence_batching.state.use_same_buffer_for_input_output", "sequence_batching.state.use_growable_memory"],
  ],
  ["sequence_batching { state { use_growable_memory: false } }", []],
  [
    'platform: "ensemble" ensemble_scheduling { step { model_namespace: "n" } }',
    ["ensemble_scheduling.step.model_namespace"],
  ],
])("without effect in %s: %s", (text, expected) => {
  expect(Support.warnings(Result.getOrThrow(ConfigText.parse(text)), false)).toEqual(expected)
})

it("a rate limiter of an instance group has an effect only if executions are limited", () => {
  const config = Result.getOrThrow(ConfigText.parse("instance_group { rate_limiter { priority: 2 } }"))
  expect(Support.warnings(config, false)).toEqual(["instance_group.rate_limiter"])
  expect(Support.warnings(config, true)).toEqual([])
})
