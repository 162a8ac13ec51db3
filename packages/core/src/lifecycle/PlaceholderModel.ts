/**
 * A model that is declared but not loaded: it shows the properties in its declaration and rejects all requests. Not for
 * models whose instances are temporarily unavailable.
 */
import { Effect, Result } from "effect"
import { constVoid } from "effect/Function"
import { ModelNotReady } from "../error/InferenceError.ts"
import { ModelStatistics } from "../metrics/ModelStatistics.ts"
import type { Definition } from "../model/Definition.ts"
import type { Fields } from "../model/Field.ts"
import { errorPrefix } from "../request/Request.ts"
import * as ModelDescription from "../running/ModelDescription.ts"
import * as ModelLife from "../running/ModelLife.ts"
import { RunningModel } from "../running/RunningModel.ts"

/** `failure`: why the model is not there; undefined for a model that is being loaded. */
export const make = (definition: Definition<Fields, Fields>, failure?: string): RunningModel => {
  const { name, version } = definition
  const statistics = new ModelStatistics()
  const problem = failure === undefined ? "is being loaded" : `is unavailable: ${failure}`
  return new RunningModel({
    description: ModelDescription.make(definition, { platform: "nereid", statistics }),
    calls: {
      decoupled: false,
      emits: false,
      keepsInputs: true,
      timeout: undefined,
      cycles: undefined,
      submit: (request, reply) => {
        statistics.failed("REJECTED", 0)
        const message = `${errorPrefix(request)}model '${name}' version ${version} ${problem}`
        reply(Result.fail(new ModelNotReady({ message })))
        return constVoid
      },
    },
    life: ModelLife.make({
      isReady: () => false,
      problem: () => failure ?? "",
      pending: () => 0,
      drained: Effect.void,
    }),
  })
}
