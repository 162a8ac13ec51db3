/** The order of requests that cannot share a batch, as a parameter of a configuration. */
import type { GroupOrder } from "@nereid/core/internal/model/Batching"
import type { ModelConfig } from "@nereid/protocol/model_config"

export const parameter = "batch_group_order"

/** Triton has the order of arrival only. */
export const of = (config: ModelConfig): GroupOrder => (textOf(config) === "independent" ? "independent" : "arrival")

export const problem = (config: ModelConfig): string | undefined => {
  const text = textOf(config)
  if (text === undefined || text === "independent" || text === "arrival") return undefined
  return `parameter '${parameter}' must be independent or arrival for ${config.name}, but '${text}' was given`
}

const textOf = ({ parameters }: ModelConfig) => parameters[parameter]?.stringValue.trim()
