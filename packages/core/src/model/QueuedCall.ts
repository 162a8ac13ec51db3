/**
 * Queue options of a call in code: the protocol's parameters `priority` and `timeout` with types, so that a model need
 * not declare them. QueuePolicy.ts has the options of the queue.
 */
import { Duration, Result } from "effect"
import type { Parameter, Parameters } from "../request/Request.ts"
import type { SampleError } from "./SampleCodec.ts"

export interface QueuedCallOptions {
  /** Priority level, if the model has levels; 1 is the highest. Default: the model's default. */
  readonly priority?: number | bigint
  /** Maximum time in the queue, if the model allows overrides; at most the model's timeout. */
  readonly queueTimeout?: Duration.Input
}

/** The parameters of a call, including its queue options. */
export const parameters = (
  given: Parameters,
  { priority, queueTimeout }: QueuedCallOptions,
): Result.Result<Parameters, SampleError> => {
  if (priority === undefined && queueTimeout === undefined) return Result.succeed(given)
  const all: Record<string, Parameter> = { ...given }
  if (priority !== undefined) {
    if (!(typeof priority === "bigint" || Number.isSafeInteger(priority)) || priority < 1) {
      return Result.fail({ field: "priority", message: `must be an integer of at least 1, but ${priority} was given` })
    }
    all["priority"] = BigInt(priority)
  }
  const millis = queueTimeout === undefined ? Infinity : Duration.toMillis(queueTimeout)
  if (millis <= 0) {
    return Result.fail({ field: "queueTimeout", message: `must be longer than 0, but ${millis} ms was given` })
  }
  if (millis !== Infinity) all["timeout"] = BigInt(Math.ceil(millis * 1e3))
  return Result.succeed(all)
}
