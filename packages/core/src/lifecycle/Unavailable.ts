/**
 * Replaces a model that failed to load. The server starts, reports the model as unavailable with the reason, and
 * rejects its requests. Not for models whose instances are temporarily unavailable.
 */
import { Cause, Context, Effect, Exit, Layer, Scope } from "effect"
import * as PlaceholderModel from "./PlaceholderModel.ts"
import type { ModelClass } from "../call/ModelClass.ts"
import type { Fields } from "../model/Field.ts"
import type { Declared } from "../model/Declared.ts"
import { inference } from "../call/EffectCalls.ts"
import { causeMessage } from "../error/CauseMessage.ts"

/**
 * The model of this layer. If the layer cannot be built, an unavailable model replaces it, and the failure is logged:
 *
 * ```ts
 * Server.layer([Digits, Bert]).pipe(Layer.provide([DigitsLive, Model.orUnavailable(Bert, BertLive)]))
 * ```
 *
 * The partial build is released immediately. The server is not ready while one of its models is unavailable.
 */
export const orUnavailable = <Self, N extends string, I extends Fields, O extends Fields, P extends Declared, E, R>(
  model: ModelClass<Self, N, I, O, P>,
  layer: Layer.Layer<Self, E, R>,
): Layer.Layer<Self, never, R> =>
  // With the memo map of the whole, so that layers below it are those that others have.
  Layer.fromBuild((memoMap, outer) =>
    Effect.gen(function* () {
      const scope = yield* Scope.fork(outer)
      const exit = yield* Effect.exit(Layer.buildWithMemoMap(layer, memoMap, scope))
      if (Exit.isSuccess(exit)) return exit.value
      yield* Scope.close(scope, exit)
      if (Cause.hasInterruptsOnly(exit.cause)) return yield* Effect.interrupt
      const { definition } = model
      yield* Effect.logError(`Model '${definition.name}' version ${definition.version} is unavailable`, exit.cause)
      return Context.make(model, inference(definition, PlaceholderModel.make(definition, causeMessage(exit.cause))))
    }),
  )
