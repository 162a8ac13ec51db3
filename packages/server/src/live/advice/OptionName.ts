/** Names of the options that advice recommends: in code, or in the `config.pbtxt` of a model in the repository. */
import type { RunningDetails } from "@nereid/dashboard/internal/live/LiveModel"

const names = {
  instances: ["instances", "instance_group.count"],
  maxBatchSize: ["maxBatchSize", "max_batch_size"],
  maxQueueDelay: ["batching.maxQueueDelay", "dynamic_batching.max_queue_delay_microseconds"],
  maxQueueSize: ["batching.maxQueueSize", "dynamic_batching.default_queue_policy.max_queue_size"],
  defaultTimeout: ["batching.defaultTimeout", "dynamic_batching.default_queue_policy.default_timeout_microseconds"],
  responseCache: ["responseCache", "response_cache.enable"],
} as const

export const optionName = (option: keyof typeof names, { origin }: Pick<RunningDetails, "origin">): string => {
  const [inCode, inConfiguration] = names[option]
  return origin === "code" ? inCode : inConfiguration
}
