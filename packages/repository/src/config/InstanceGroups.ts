/** Converts the instance groups of a configuration to the `instances` option of models in code. */
import type { GroupOptions } from "@nereid/core/internal/instance/InstancePlan"
import { type ModelConfig, ModelInstanceGroup_Kind as Kind } from "@nereid/protocol/model_config"

/** Returns the groups of a checked configuration; at least one. */
export const options = ({ instanceGroup }: ModelConfig): ReadonlyArray<GroupOptions> =>
  instanceGroup
    .filter(({ passive }) => !passive)
    .map(({ name, count, kind, gpus }) => (kind === Kind.GPU ? { name, count, kind: "GPU", gpus } : { name, count }))
