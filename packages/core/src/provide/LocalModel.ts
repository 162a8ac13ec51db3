/**
 * A running model with instances in this process: a scheduler that gives them batches, and the stages before it.
 * Provide.ts builds the instances.
 */
import { Duration, Effect } from "effect"
import * as Batch from "../batch/Batch.ts"
import type * as FlatBatch from "../batch/FlatBatch.ts"
import * as Grouping from "../batch/Grouping.ts"
import * as Padding from "../batch/Padding.ts"
import * as ResponseCache from "../cache/ResponseCache.ts"
import * as InstancePlan from "../instance/InstancePlan.ts"
import type * as InstanceSet from "../instance/InstanceSet.ts"
import { ModelStatistics } from "../metrics/ModelStatistics.ts"
import type { Definition } from "../model/Definition.ts"
import type { Fields } from "../model/Field.ts"
import type { Sequencing } from "../model/Sequencing.ts"
import type { WarmUps } from "../model/WarmUpOptions.ts"
import type { Request } from "../request/Request.ts"
import type { ModelFile } from "../running/ModelFile.ts"
import * as ModelDescription from "../running/ModelDescription.ts"
import * as ModelLife from "../running/ModelLife.ts"
import { RunningModel } from "../running/RunningModel.ts"
import * as Scheduler from "../scheduler/Scheduler.ts"
import * as SubmitPipeline from "../scheduler/SubmitPipeline.ts"
import * as ContinuationStage from "./ContinuationStage.ts"
import * as DefaultsStage from "./DefaultsStage.ts"
import * as EmissionStage from "./EmissionStage.ts"
import * as LocalSequences from "./LocalSequences.ts"
import * as ParameterStage from "./ParameterStage.ts"
import * as SplitStage from "./SplitStage.ts"

/** Options of execution, for instances of any kind. */
export interface ExecutionOptions {
  /** Platform of the model, for metadata. */
  readonly platform: string
  /**
   * Whether the instances answer a request by any number of responses, through its `emit`; each batch is one request
   * then. A function is called once they are built.
   */
  readonly decoupled?: boolean | (() => boolean)
  /** As in ModelCalls. Default true. */
  readonly keepsInputs?: boolean | undefined
  /** As in ModelCalls. Default false. */
  readonly copiesInputs?: boolean | undefined
  /** As in ModelCalls. Default false. */
  readonly mapsShared?: boolean | undefined
  /**
   * The input of the instances' code: a batch whose tensors are joined, and therefore agree; the requests of a batch;
   * or one sample, independent of the rest of its batch. Default "batch".
   */
  readonly granularity?: "batch" | "requests" | "sample"
  /** How requests of different shapes share a flat batch. The instances are FlatInstances then. */
  readonly flat?: FlatBatch.FlatBatch | undefined
  /** Whether an answer may depend on more of a request than its inputs. Default true. */
  readonly readsRequest?: boolean
  /** Whether the instances execute in other threads. Default false. */
  readonly threaded?: boolean
  /**
   * Whether each batch may be one step of its requests: they share batches though they have any number of responses. If
   * they return to the queue behind it (iterative sequences), the responses wait for their readers outside of the
   * batch. Default false.
   */
  readonly isStepwise?: boolean
  /** Whether requests may go on after their batch (`rest` of a Response). Default false. */
  readonly outlivesBatches?: boolean
  /** Sequences with the tensors of the instances. Default: those of the declaration. */
  readonly sequencing?: Sequencing | undefined
  /** The file that the instances were loaded from. */
  readonly modelFile?: ModelFile
}

export interface LocalModelOptions {
  readonly definition: Definition<Fields, Fields>
  readonly execution: ExecutionOptions
  readonly instances: Pick<InstanceSet.InstanceSet<unknown>, "instances" | "groups"> &
    Partial<InstanceSet.InstanceSet<unknown>>
  /** Default: no cache. */
  readonly cache?: ResponseCache.ResponseCacheOptions | undefined
  readonly warmUp?: WarmUps<Fields> | undefined
  /** Whether the scheduler of another thread calls the model. Default false. */
  readonly isHosted?: boolean
  /** Default: separate statistics. */
  readonly statistics?: ModelStatistics | undefined
  /** Ends the instances. Default: they end with their scope. */
  readonly release?: Effect.Effect<void>
}

/** The scheduler stops when the scope closes. */
export const make = Effect.fnUntraced(function* ({
  definition,
  execution,
  instances: set,
  cache,
  warmUp,
  isHosted = false,
  statistics = new ModelStatistics(),
  release = Effect.void,
}: LocalModelOptions) {
  const { name, version, maxBatchSize, batching, sequencing } = definition
  const { platform, keepsInputs = true, flat, modelFile, readsRequest = true, threaded = false } = execution
  const sharing = sharingOf(definition, execution)
  const { decoupled, groupKey } = sharing
  const sequences =
    sequencing &&
    (yield* LocalSequences.make({
      model: name,
      version,
      sequencing,
      groupKey,
      maxQueueSize: batching.maxQueueSize,
      batches: maxBatchSize > 0,
    }))
  const scheduler = yield* Scheduler.make({
    model: name,
    instances: set.instances,
    statistics,
    groupKey,
    bisects: batching.onFailure === "bisect",
    batchOf: batchOf(sharing.padding, statistics),
    maxBatchSize: sharing.isUnshared ? 1 : Math.max(1, maxBatchSize),
    preferredBatchSizes: sharing.isUnshared ? [] : batching.preferredBatchSizes,
    maxQueueDelay: Duration.toMillis(batching.maxQueueDelay) * 1e6,
    maxQueueSize: batching.maxQueueSize,
    groupOrder: batching.groupOrder,
    queueing: batching.queueing,
    latencyTarget: batching.latencyTarget && Duration.toMillis(batching.latencyTarget) * 1e6,
    startsAt: batching.startsAt,
    passesReschedules: isHosted,
    makeQueue: sequences?.makeQueue,
  })
  const { queueing } = batching
  const isIterative = sequencing?.isIterative === true
  const cached =
    cache && (yield* ResponseCache.make({ ...cache, model: name, version, readsRequest, statistics, queueing }))
  const fork = Effect.runForkWith(yield* Effect.context<never>())
  // Ahead of the scheduler's own finalizer.
  if (sequences !== undefined) yield* Effect.addFinalizer(() => sequences.stop)
  const submit = SubmitPipeline.make(
    {
      sessions: sequences?.sessions(scheduler.queueChanged),
      emissions: isIterative && execution.isStepwise === true ? EmissionStage.make(fork) : undefined,
      parameters: ParameterStage.make(definition, statistics),
      defaults: DefaultsStage.make(definition),
      cache: cached?.stage,
      split: sharing.groupsByValue ? SplitStage.make(definition, statistics) : undefined,
      numbers: sequences?.numbers,
      continuations: execution.outlivesBatches === true ? ContinuationStage.make(scheduler.keep) : undefined,
    },
    scheduler.submit,
  )
  const { prepare } = set
  return new RunningModel({
    description: ModelDescription.make(definition, {
      platform,
      statistics,
      flat,
      threaded,
      responseCache: cache !== undefined,
      modelFile,
      warmUp,
    }),
    calls: {
      decoupled,
      emits: decoupled,
      keepsInputs,
      copiesInputs: execution.copiesInputs,
      // Copies and parts of a response have their own memory.
      mapsShared: execution.mapsShared === true && cache === undefined && batching.groupBy.inputs.length === 0,
      // A response may be cached.
      preview: cache === undefined && !decoupled ? scheduler.preview : undefined,
      timeout: undefined,
      cycles: set.instances[0]?.cycles,
      submit,
    },
    life: ModelLife.make({
      isReady: scheduler.isReady,
      pending: scheduler.pending,
      activity: scheduler.activity,
      unrecoverable: scheduler.unrecoverable,
      endSequences: scheduler.endSequences,
      retire: scheduler.retire,
      sequences: scheduler.sequences,
      drained: cached === undefined ? scheduler.drained : Effect.andThen(cached.settled, scheduler.drained),
      keep: scheduler.keep,
      release,
      instanceGroups: () => set.groups,
      regroup: prepare && ((groups) => prepare(InstancePlan.make(name, version, groups), scheduler.replaceInstances)),
    }),
  })
})

/** Which requests may share a batch, and how their tensors become one. */
interface Sharing {
  readonly decoupled: boolean
  /** Whether each request is a batch by itself. */
  readonly isUnshared: boolean
  /** Whether requests of a batch agree in the values of `groupBy`. */
  readonly groupsByValue: boolean
  readonly groupKey: Grouping.GroupKey
  readonly padding: Padding.Rule | undefined
}

const noInputs: ReadonlySet<number> = new Set()

const sharingOf = (
  { signature, maxBatchSize, batching }: Definition<Fields, Fields>,
  { decoupled: isDecoupled = false, granularity = "batch", isStepwise = false, flat }: ExecutionOptions,
): Sharing => {
  const decoupled = typeof isDecoupled === "function" ? isDecoupled() : isDecoupled
  const isApart = decoupled && !isStepwise
  const joins = granularity === "batch" && maxBatchSize > 0 && !isApart
  const groupsByValue = granularity !== "sample" && !decoupled
  const isUnshared = isApart || !batching.shared
  const differing = isUnshared ? undefined : joins ? (flat?.inputs ?? noInputs) : batching.differing
  const groupKey = Grouping.combine(
    differing && Grouping.byShapes(Grouping.agreeing(signature, differing), batching.ragged),
    groupsByValue ? Grouping.byValues(batching.groupBy) : undefined,
  )
  return { decoupled, isUnshared, groupsByValue, groupKey, padding: joins ? Padding.rule(batching) : undefined }
}

const batchOf = (
  padding: Padding.Rule | undefined,
  statistics: ModelStatistics,
): ((requests: ReadonlyArray<Request>) => Batch.Batch) => {
  if (padding === undefined) return Batch.make
  return (requests) => {
    const padded = padding(requests)
    statistics.filled(Padding.elements(requests, padded))
    return Batch.make(requests, padded)
  }
}
