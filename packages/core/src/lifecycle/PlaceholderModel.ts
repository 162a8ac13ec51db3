/**
 * A model that is declared and not there: what a server shows of it meanwhile, or for good, and that it refuses its requests.
 * Not a model whose instances are away for a while.
 */
import { Effect, Result } from "effect"
import type { Definition } from "../model/Definition.ts"
import { ModelNotReady } from "../error/InferenceError.ts"
import type { Fields } from "../model/Field.ts"
import { errorPrefix } from "../request/Request.ts"
import type { RunningModel } from "../running/RunningModel.ts"
import { Statistics } from "../metrics/ModelStatistics.ts"

/** `unavailable`: why it does not come; undefined where it is yet to come. */
export const make = (definition: Definition<Fields, Fields>, unavailable?: string): RunningModel => {
  const { name, version, signature, maxBatchSize, batching } = definition
  const statistics = new Statistics()
  const problem = unavailable === undefined ? "is being loaded" : `is unavailable: ${unavailable}`
  return {
    name,
    version,
    platform: "nereid",
    signature,
    maxBatchSize,
    decoupled: false,
    keepsInputs: true,
    batching,
    instanceGroups: [],
    statistics,
    ...(unavailable === undefined ? { isLoading: true } : { unavailable }),
    isReady: () => false,
    pending: () => 0,
    drained: Effect.void,
    submit: (request, reply) => {
      statistics.failed("REJECTED", 0)
      const message = `${errorPrefix(request)}model '${name}' version ${version} ${problem}`
      reply(Result.fail(new ModelNotReady({ message })))
      return () => {}
    },
  }
}
