/** The latency target of a model, as a parameter of a configuration. Triton has none. */
import type { ModelConfig } from "@nereid/protocol/model_config"
import { Duration } from "effect"

const parameter = "latency_target_microseconds"

/** The parameter that sets this target. */
export const toParameter = (target: Duration.Duration | undefined): Readonly<Record<string, string>> =>
  target === undefined ? {} : { [parameter]: String(Math.max(1, Math.round(Duration.toMillis(target) * 1000))) }

/** Undefined if it is not set. */
export const of = (config: ModelConfig): Duration.Duration | undefined => {
  const text = textOf(config)
  return text === undefined ? undefined : Duration.micros(BigInt(text))
}

export const problem = (config: ModelConfig): string | undefined => {
  const text = textOf(config)
  if (text === undefined || /^0*[1-9][0-9]{0,14}$/.test(text)) return undefined
  return `parameter '${parameter}' must be an integer above 0 for ${config.name}, but '${text}' was given`
}

const textOf = ({ parameters }: ModelConfig) => parameters[parameter]?.stringValue.trim()
