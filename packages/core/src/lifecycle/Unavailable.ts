/**
 * A model that does not come to run, in the place of one that was to: a server that has it lives, says that the model is
 * unavailable and why, and refuses its requests. Not a model whose instances are away for a while.
 */
import { Cause, Context, Effect, Exit, Layer, Scope } from "effect"
import * as PlaceholderModel from "./PlaceholderModel.ts"
import type { ModelClass } from "../call/ModelClass.ts"
import type { Fields } from "../model/Field.ts"
import type { Declared } from "../model/Declared.ts"
import { inference } from "../call/EffectCalls.ts"
import { causeMessage } from "../error/CauseMessage.ts"

/**
 * The model of this layer, or one that is unavailable where the layer cannot be built, whose failure is logged:
 *
 * ```ts
 * Server.layer([Digits, Bert]).pipe(Layer.provide([DigitsLive, Model.orUnavailable(Bert, BertLive)]))
 * ```
 *
 * What the layer has begun to build is released at once. The server is not ready as long as one of its models is not.
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
