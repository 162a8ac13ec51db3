/**
 * From instances to a service: statistics, scheduler and the typed face of a model, as the layer that provides it. Every
 * way to provide a model ends here, whatever its instances are.
 */
import { Context, Duration, Effect, Exit, Layer, Scope } from "effect"
import * as Batch from "../batch/Batch.ts"
import * as Defaults from "../model/Defaults.ts"
import type { Definition } from "../model/Definition.ts"
import type { ModelClass } from "../call/ModelClass.ts"
import type { Fields } from "../model/Field.ts"
import { Hosting } from "../instance/Hosting.ts"
import type { Request } from "../request/Request.ts"
import type * as FlatBatch from "../batch/FlatBatch.ts"
import * as Grouping from "../batch/Grouping.ts"
import type { Instance } from "../instance/Instance.ts"
import * as InstancePlan from "../instance/InstancePlan.ts"
import * as InstanceSet from "../instance/InstanceSet.ts"
import type { ModelFile } from "../running/ModelFile.ts"
import type { Declared } from "../model/Declared.ts"
import { checked } from "./ParameterStage.ts"
import * as Padding from "../batch/Padding.ts"
import * as PartedRequest from "../scheduler/SplitRequest.ts"
import { type RunningModel, Watcher } from "../running/RunningModel.ts"
import * as ResponseCache from "../cache/ResponseCache.ts"
import * as Scheduler from "../scheduler/Scheduler.ts"
import { Statistics } from "../metrics/ModelStatistics.ts"
import { inference } from "../call/EffectCalls.ts"
import type { WarmUps } from "../model/WarmUpOptions.ts"
import * as WarmUp from "./WarmUp.ts"

export interface InstancesOptions<E, R> {
  /** What runs the model, for metadata. */
  readonly platform: string
  /**
   * Whether they answer a request by any number of responses, through its `emit`; each batch is one request then. A function is
   * asked once they are built.
   */
  readonly decoupled?: boolean | (() => boolean)
  /** As in RunningModel. Default true. */
  readonly keepsInputs?: boolean | undefined
  /**
   * What its code sees at a time: a batch whose tensors are joined, and have to agree for that; the requests of a batch; or
   * one sample, whatever the others of its batch are. Default "batch".
   */
  readonly sees?: "batch" | "requests" | "sample"
  /** How requests of different shapes share a batch, where its instances know about it; they are FlatInstances then. */
  readonly flat?: FlatBatch.FlatBatch | undefined
  /** Whether an answer may depend on more of a request than its inputs. Default true. */
  readonly readsRequest?: boolean
  /** As in RunningModel. */
  readonly modelFile?: ModelFile
  /** They are built with the layer, and released after the scheduler has stopped. */
  readonly instances: Effect.Effect<InstanceSet.Source<E, R>, E, R>
}

/** What every model may have around its instances. Plain data: it may come from a file. */
export interface ServingOptions<I extends Fields = Fields> {
  /** What each instance is tried with before the model takes requests. Default nothing. */
  readonly warmUp?: WarmUps<I>
  /**
   * Whether a request that asks what another one has asked before gets its answer, without an execution; for models whose
   * answers depend on nothing else. Not for decoupled ones. Default false.
   */
  readonly responseCache?: boolean | ResponseCache.ResponseCacheOptions
}

/** What a model with these ServingOptions may fail with. */
export type Failure<Options> = WarmUp.Errors<Options>

/** What counts for all models of one name that are built with it. Default: each has statistics of its own. */
export const Counted = Context.Reference<{ readonly model: string; readonly statistics: Statistics } | undefined>(
  "@nereid/core/Counted",
  { defaultValue: () => undefined },
)

/** The layer of a model that these instances execute, behind a scheduler of its own. */
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
  options: InstancesOptions<E, R>,
  serving?: Options,
): Layer.Layer<Self, E | Failure<Options>, Exclude<R, Scope.Scope>> => {
  const { definition } = model
  const cache = ResponseCache.check(definition.name, serving?.responseCache)
  if (options.decoupled === true && cache !== undefined) {
    throw new TypeError(`Model "${definition.name}": responseCache is not for a model with any number of responses.`)
  }
  const trial = WarmUp.make(definition, serving?.warmUp)
  const layer = Layer.effect(
    model,
    Effect.gen(function* () {
      // A scope of its own, so that the model may leave a server before what was built with it.
      const own = yield* Scope.fork(yield* Scope.Scope)
      const loaded = Effect.gen(function* () {
        const [loading, instances] = yield* Effect.timed(built(definition, options, trial))
        const isHosted = (yield* Hosting) !== undefined
        const counted = yield* Counted
        const statistics = counted?.model === definition.name ? counted.statistics : undefined
        const inPlace = isHosted ? atOnce(definition) : definition
        const running = yield* run(inPlace, options, instances, cache, serving, statistics)
        running.statistics.loadSeconds = Duration.toSeconds(loading)
        return running
      })
      const running = Object.assign(yield* Scope.provide(loaded, own), { release: Scope.close(own, Exit.void) })
      const watch = yield* Watcher
      watch(running)
      return inference(definition, running)
    }),
  )
  // Without a warm-up, or with one whose failure is ignored, none can fail.
  return layer as Layer.Layer<Self, E | Failure<Options>, Exclude<R, Scope.Scope>>
}

/** The instances, each of which has passed its warm-up. */
const built = Effect.fnUntraced(function* <E, R, EW>(
  definition: Definition<Fields, Fields>,
  options: InstancesOptions<E, R>,
  trial: WarmUp.Trial<EW> | undefined,
): Effect.fn.Return<InstanceSet.InstanceSet<E | EW>, E | EW, R | Scope.Scope> {
  const context = yield* Effect.context<R>()
  const source = yield* options.instances
  // The scope that they have is their own, the last that is provided.
  const own = (planned: InstancePlan.PlannedInstance) =>
    Effect.flatMap(Scope.Scope, (scope) =>
      Effect.provideContext(source.build(planned), Context.add(context, Scope.Scope, scope)),
    )
  const alone = (instance: Instance) => run(atOnce(definition), options, { instances: [instance], groups: [] })
  return yield* InstanceSet.make({ ...source, build: own }, (instance) => trial?.(instance, alone) ?? Effect.void)
})

/** The same where nobody waits for others, and nobody is refused. */
const atOnce = <I extends Fields, O extends Fields>(definition: Definition<I, O>): Definition<I, O> => ({
  ...definition,
  batching: {
    ...definition.batching,
    shared: true,
    maxQueueDelay: Duration.zero,
    preferredBatchSizes: [],
    maxQueueSize: Number.MAX_SAFE_INTEGER,
    queueing: undefined,
  },
})

const none: ReadonlySet<number> = new Set()

const run = Effect.fnUntraced(function* (
  definition: Definition<Fields, Fields>,
  {
    platform,
    decoupled: isDecoupled = false,
    keepsInputs = true,
    sees = "batch",
    readsRequest = true,
    flat,
    modelFile,
  }: Omit<InstancesOptions<never, never>, "instances">,
  set: Pick<InstanceSet.InstanceSet<unknown>, "instances" | "groups"> & Partial<InstanceSet.InstanceSet<unknown>>,
  cache?: ResponseCache.ResponseCacheOptions,
  serving?: ServingOptions,
  statistics: Statistics = new Statistics(),
) {
  const { name, version, signature, maxBatchSize, batching } = definition
  const decoupled = typeof isDecoupled === "function" ? isDecoupled() : isDecoupled
  const joins = sees === "batch" && maxBatchSize > 0 && !decoupled
  const agrees = sees !== "sample" && !decoupled
  const isAlone = decoupled || !batching.shared
  const differing = isAlone ? undefined : joins ? (flat?.inputs ?? none) : batching.differing
  const padding = joins ? Padding.rule(batching) : undefined
  const scheduler = yield* Scheduler.make({
    model: name,
    instances: set.instances,
    statistics,
    groupKey: Grouping.combine(
      differing && Grouping.byShapes(Grouping.agreeing(signature, differing), batching.ragged),
      agrees ? Grouping.byValues(batching.groupBy) : undefined,
    ),
    bisects: batching.onFailure === "bisect",
    batchOf: padding === undefined ? Batch.make : (requests) => filled(requests, padding(requests), statistics),
    maxBatchSize: isAlone ? 1 : Math.max(1, maxBatchSize),
    preferredBatchSizes: isAlone ? [] : batching.preferredBatchSizes,
    maxQueueDelay: Duration.toMillis(batching.maxQueueDelay) * 1e6,
    maxQueueSize: batching.maxQueueSize,
    queueing: batching.queueing,
  })
  const parted: Scheduler.Scheduler["submit"] = (request, reply, counts = statistics) => {
    const parts = Grouping.parts(batching.groupBy, request)
    if (parts === undefined) return scheduler.submit(request, reply, counts)
    const { submit } = scheduler
    const how = { model: name, outputs: signature.outputs, statistics: counts, submit }
    return PartedRequest.submit(how, request, parts, reply)
  }
  // What a model has not declared costs its requests nothing, not even a call.
  const submit: Scheduler.Scheduler["submit"] = agrees && batching.groupBy.inputs.length > 0 ? parted : scheduler.submit
  const asked: RunningModel["submit"] = cache
    ? yield* ResponseCache.make({
        ...cache,
        model: name,
        readsRequest,
        statistics,
        submit,
        queueing: batching.queueing,
      })
    : submit
  const { prepare } = set
  const regroup = prepare && {
    regroup: (groups: ReadonlyArray<InstancePlan.GroupOptions>) =>
      prepare(InstancePlan.make(name, version, groups), scheduler.replaceInstances),
  }
  const fill = Defaults.filler(signature, maxBatchSize > 0)
  const running: RunningModel = {
    name,
    version,
    platform,
    signature,
    maxBatchSize,
    decoupled,
    keepsInputs,
    batching,
    flat,
    modelFile,
    warmUp: serving?.warmUp,
    get instanceGroups() {
      return set.groups
    },
    statistics,
    asker: set.instances[0]?.asker,
    isReady: scheduler.isReady,
    unrecoverable: scheduler.unrecoverable,
    pending: scheduler.pending,
    responseCache: cache !== undefined,
    drained: scheduler.drained,
    keep: scheduler.keep,
    submit: checked(
      definition,
      statistics,
      fill === undefined ? asked : (request, reply) => asked(fill(request), reply),
    ),
    ...regroup,
  }
  return running
})

const filled = (requests: ReadonlyArray<Request>, padding: Padding.Padding | undefined, statistics: Statistics) => {
  statistics.filled(Padding.elements(requests, padding))
  return Batch.make(requests, padding)
}
