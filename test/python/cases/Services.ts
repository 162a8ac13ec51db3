/** Services of the server for models in Python: metrics, readiness, death, limits of time. */
import type { CaseGroup } from "../PythonCase.ts"
import { pairOf, parameter, texts } from "../PythonRepository.ts"
import { metricCases } from "./Metrics.ts"
import { readinessCases } from "./Readiness.ts"
import { deathCases } from "./Deaths.ts"

export const services: CaseGroup = {
  name: "services for models in Python",
  models: {
    one: { file: "triton_metrics", config: texts },
    two: { file: "triton_metrics", config: texts },
    ready: { file: "triton_ready", config: `${pairOf("FP32")} instance_group { count: 2 }` },
    gate: {
      file: "triton_gate",
      config: `${texts} max_batch_size: 1 dynamic_batching { default_queue_policy { allow_timeout_override: true } }`,
    },
    sync: { file: "triton_sync", config: texts },
    other: { file: "triton_sync", config: texts },
    slow: { file: "triton_sync", config: `${texts} ${parameter("execute_timeout_seconds", 1)}` },
  },
  files: (fixture) => fixture.write("ready/readiness", "true"),
  options: { control: "explicit", load: ["*"] },
  cases: [...metricCases, ...readinessCases, ...deathCases],
}
