/** Turns instances into a service: the layer that provides a model. All models that execute in this process use it. */
import { Context, Duration, Effect, Exit, Layer, Scope } from "effect"
import * as ResponseCache from "../cache/ResponseCache.ts"
import { inference } from "../call/EffectCalls.ts"
import type { ModelClass } from "../call/ModelClass.ts"
import { Hosting } from "../instance/Hosting.ts"
import type { Instance } from "../instance/Instance.ts"
import type * as InstancePlan from "../instance/InstancePlan.ts"
import * as InstanceSet from "../instance/InstanceSet.ts"
import type { ModelStatistics } from "../metrics/ModelStatistics.ts"
import type { Declared } from "../model/Declared.ts"
import type { Definition } from "../model/Definition.ts"
import type { Fields } from "../model/Field.ts"
import * as InitialStates from "../model/InitialStates.ts"
import type { WarmUps } from "../model/WarmUpOptions.ts"
import { Watcher } from "../running/RunningModel.ts"
import * as SequenceInstance from "../sequence/SequenceInstance.ts"
import * as LocalModel from "./LocalModel.ts"
import * as WarmUp from "./WarmUp.ts"

export interface InstancesOptions<E, R> extends LocalModel.ExecutionOptions {
  /** They are built with the layer, and released after the scheduler has stopped. */
  readonly instances: Effect.Effect<InstanceSet.InstanceSource<E, R>, E, R>
}

/** Serving options of every model. Plain data: it may come from a file. */
export interface ServingOptions<I extends Fields = Fields> {
  /** Warm-up requests that each instance executes before the model takes requests. Default none. */
  readonly warmUp?: WarmUps<I>
  /**
   * Whether a repeated request receives the answer of the earlier one, without an execution; for models whose answers
   * depend on the request alone. Not for decoupled models. Default false.
   */
  readonly responseCache?: boolean | ResponseCache.ResponseCacheOptions
}

/** Errors of building a model with these ServingOptions. */
export type Failure<Options> = WarmUp.Errors<Options>

/** Statistics that all models of one name share while it is provided. Default: each model has its own. */
export const SharedStatistics = Context.Reference<
  { readonly model: string; readonly statistics: ModelStatistics } | undefined
>("@nereid/core/SharedStatistics", { defaultValue: () => undefined })

/** The layer of a model that these instances execute, with a separate scheduler. */
export const fromInstances = <
  Self,
  N extends string,
  I extends Fields,
  O extends Fields,
  P extends Declared,
  E,
  R,
  Options extends ServingOptions<I> = {},
>(
  model: ModelClass<Self, N, I, O, P>,
  execution: InstancesOptions<E, R>,
  serving?: Options,
): Layer.Layer<Self, E | Failure<Options>, Exclude<R, Scope.Scope>> => {
  const { sequencing = model.definition.sequencing } = execution
  const definition =
    sequencing === undefined
      ? model.definition
      : { ...model.definition, sequencing: InitialStates.complete(model.definition, sequencing) }
  const cache = ResponseCache.check(definition.name, serving?.responseCache)
  if (execution.decoupled === true && cache !== undefined) {
    throw new TypeError(`Model "${definition.name}": responseCache requires a model that is not decoupled.`)
  }
  if (definition.state !== undefined && cache !== undefined) {
    throw new TypeError(`Model "${definition.name}": a model with sequences has no responseCache.`)
  }
  const warmUp = WarmUp.make(definition, serving?.warmUp)
  const layer = Layer.effect(
    model,
    Effect.gen(function* () {
      // A separate scope, so that the model may leave a server before the other resources of its build.
      const modelScope = yield* Scope.fork(yield* Scope.Scope)
      const loaded = Effect.gen(function* () {
        const isHosted = (yield* Hosting) !== undefined
        // The thread that hosts the model adds the tensors of its sequences.
        const built = isHosted ? { ...definition, sequencing: undefined } : definition
        const [loading, instances] = yield* Effect.timed(build(built, execution, warmUp))
        const shared = yield* SharedStatistics
        const running = yield* LocalModel.make({
          definition: isHosted ? withoutQueue(definition) : definition,
          execution,
          instances,
          isHosted,
          cache,
          warmUp: serving?.warmUp,
          statistics: shared?.model === definition.name ? shared.statistics : undefined,
          release: Scope.close(modelScope, Exit.void),
        })
        running.description.statistics.loadSeconds = Duration.toSeconds(loading)
        return running
      })
      const running = yield* Scope.provide(loaded, modelScope)
      const watch = yield* Watcher
      watch(running)
      return inference(definition, running)
    }),
  )
  // Without a warm-up, or with one whose failure is ignored, the layer has no warm-up errors.
  return layer as Layer.Layer<Self, E | Failure<Options>, Exclude<R, Scope.Scope>>
}

/** The instances, each of which has passed its warm-up. */
const build = Effect.fn("Provide.build")(function* <E, R, EW>(
  definition: Definition<Fields, Fields>,
  execution: InstancesOptions<E, R>,
  warmUp: WarmUp.InstanceWarmUp<EW> | undefined,
): Effect.fn.Return<InstanceSet.InstanceSet<E | EW>, E | EW, R | Scope.Scope> {
  const context = yield* Effect.context<R>()
  const source = yield* execution.instances
  // Each instance has a separate scope, which is provided last.
  const buildInstance = (planned: InstancePlan.PlannedInstance) =>
    Effect.flatMap(Scope.Scope, (scope) =>
      Effect.map(
        Effect.provideContext(source.build(planned), Context.add(context, Scope.Scope, scope)),
        withSequences(definition, execution),
      ),
    )
  const singleInstanceModel = (instance: Instance) =>
    LocalModel.make({
      definition: withoutQueue(definition),
      execution,
      instances: { instances: [instance], groups: [] },
    })
  return yield* InstanceSet.make(
    { ...source, build: buildInstance },
    (instance) => warmUp?.(instance, singleInstanceModel) ?? Effect.void,
  )
})

/** Gives the instances of a model the control and state tensors of its sequences. */
const withSequences =
  (
    { name, sequencing, signature, maxBatchSize }: Definition<Fields, Fields>,
    { keepsInputs = true }: Pick<LocalModel.ExecutionOptions, "keepsInputs">,
  ) =>
  (instance: Instance): Instance =>
    sequencing === undefined || !SequenceInstance.isNeeded(sequencing)
      ? instance
      : SequenceInstance.make(instance, sequencing, { signature, model: name, batches: maxBatchSize > 0, keepsInputs })

/** The same model, in which no request waits for others and none is refused for a full queue. */
const withoutQueue = <I extends Fields, O extends Fields>(definition: Definition<I, O>): Definition<I, O> => ({
  ...definition,
  sequencing: undefined,
  batching: {
    ...definition.batching,
    shared: true,
    maxQueueDelay: Duration.zero,
    preferredBatchSizes: [],
    maxQueueSize: Number.MAX_SAFE_INTEGER,
    queueing: undefined,
  },
})
