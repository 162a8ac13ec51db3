/** Limits of a model's sequences from the `parameters` of its configuration, which Triton does not have. */
import { Result } from "effect"
import { sequenceDefaults, type Sequencing } from "@nereid/core/internal/model/Sequencing"
import type { ModelConfig } from "@nereid/protocol/model_config"

export type SequenceLimits = Pick<Sequencing, "maxIdleLimit" | "maxBacklog" | "maxStateBytes" | "maxTotalStateBytes">

/** The limits, or what is wrong with the first bad value. `idleMicros`: the idle limit of the model. */
export const make = (
  parameters: ModelConfig["parameters"],
  idleMicros: number,
): Result.Result<SequenceLimits, string> => {
  const problems: Array<string> = []
  const number = (name: string, fallback: number, [min, max]: readonly [number, number]): number => {
    const text = parameters[name]?.stringValue.trim()
    if (text === undefined) return fallback
    const value = /^[0-9]{1,15}$/.test(text) ? Number(text) : NaN
    if (value >= min && value <= max) return value
    problems.push(`parameter '${name}' must be an integer from ${min} to ${max}, but '${text}' was given`)
    return fallback
  }
  const { maxBacklog, maxStateBytes, maxTotalStateBytes } = sequenceDefaults
  const stateBytes = number("max_sequence_state_bytes", maxStateBytes, [1, mostStateBytes])
  const idleLimit = "max_sequence_idle_limit_microseconds"
  const isUnlimited = parameters[idleLimit]?.stringValue.trim() === "unlimited"
  const limits = {
    maxIdleLimit: isUnlimited ? Infinity : number(idleLimit, idleMicros, [idleMicros, mostMicros]) * 1e3,
    maxBacklog: number("max_sequence_backlog", maxBacklog, [0, mostSequences]),
    maxStateBytes: stateBytes,
    // One sequence may have as much as it is allowed.
    maxTotalStateBytes: Math.max(stateBytes, maxTotalStateBytes),
  }
  const [problem] = problems
  return problem === undefined ? Result.succeed(limits) : Result.fail(problem)
}

const mostSequences = 1_000_000

/** 31 years. */
const mostMicros = 10 ** 15 - 1

/** A state is copied at each step, so more is not sensible. */
const mostStateBytes = 2 ** 31 - 1
