/** Converts the instance groups of a configuration to the `instances` option of models in code. */
import type { GroupOptions } from "@nereid/core/internal/instance/InstancePlan"
import type { GroupLimits } from "@nereid/core/internal/limiter/Resource"
import { type ModelConfig, ModelInstanceGroup_Kind as Kind, type ModelRateLimiter } from "@nereid/protocol/model_config"

/** Returns the groups of a checked configuration; at least one. */
export const options = ({ instanceGroup }: ModelConfig): ReadonlyArray<GroupOptions> =>
  instanceGroup
    .filter(({ passive }) => !passive)
    .map(({ name, count, kind, gpus, rateLimiter }) => ({
      name,
      count,
      ...(kind === Kind.GPU ? ({ kind: "GPU", gpus } as const) : {}),
      ...(rateLimiter && { rateLimiter: limits(rateLimiter) }),
    }))

const limits = ({ resources, priority }: ModelRateLimiter): GroupLimits => ({
  resources: resources.map(({ name, count, global }) => ({ name, count, global })),
  priority,
})
