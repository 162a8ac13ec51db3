/**
 * Environment variables of Triton that hold the first batch of each model back until enough requests wait, so that
 * tests know their batches. They are read at the load of a model.
 */
import type { StartThreshold } from "@nereid/core/internal/model/Batching"
import type { ModelConfig } from "@nereid/protocol/model_config"

/** Undefined without the variables, and for a model without a batcher. */
export const read = (
  environment: Readonly<Record<string, string | undefined>>,
  { schedulingChoice: { case: scheduling } }: ModelConfig,
): StartThreshold | undefined => {
  if (scheduling !== "dynamicBatching" && scheduling !== "sequenceBatching") return undefined
  const requests = count(environment["TRITONSERVER_DELAY_SCHEDULER"])
  const backlogged = scheduling === "sequenceBatching" ? count(environment["TRITONSERVER_BACKLOG_DELAY_SCHEDULER"]) : 0
  return requests === 0 && backlogged === 0 ? undefined : { requests, backlogged }
}

const count = (value = "0"): number => (/^\d{1,9}$/.test(value) ? Number(value) : 0)
