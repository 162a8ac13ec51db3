/**
 * Operations of the server, shared by every transport: metadata, readiness, statistics, configuration and inference.
 * The front ends only translate between a protocol and this interface.
 */
import { Effect, Result } from "effect"
import * as ConfigurationMessage from "@nereid/core/internal/configuration/ConfigurationMessage"
import * as ContractMessage from "@nereid/core/internal/configuration/ContractMessage"
import type { InferenceError } from "@nereid/core/Errors"
import { InvalidRequest } from "@nereid/core/Errors"
import { type Control, noRepository, type OpenRepository } from "@nereid/core/internal/lifecycle/ModelRepository"
import type { RegisteredModels } from "@nereid/core/internal/lifecycle/ModelLookup"
import type { IndexEntry, ModelStore } from "@nereid/core/internal/lifecycle/ModelStore"
import type { SpanSource } from "@nereid/core/internal/request/RequestSpan"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import { type TensorSpec, wireDims } from "@nereid/core/internal/tensor/TensorSpec"
import type { ModelStatisticsResponse } from "@nereid/protocol/grpc_service"
import type { ModelConfig } from "@nereid/protocol/model_config"
import * as LimitReports from "../limit/LimitReports.ts"
import { LateReading } from "../limit/LateReading.ts"
import { MemoryBudget } from "../limit/MemoryBudget.ts"
import { OpenConnections } from "../limit/OpenConnections.ts"
import * as LogSettings from "../log/LogSettings.ts"
import * as StatisticsMessage from "./StatisticsMessage.ts"
import * as RepositoryIndex from "./RepositoryIndex.ts"
import * as InferenceDispatch from "../dispatch/InferenceDispatch.ts"
import * as SharedMemory from "../memory/SharedMemory.ts"
import { spanned } from "../trace/Spans.ts"
import { traced } from "../trace/TracedDispatch.ts"
import type { TraceChanges, TraceSettings } from "../trace/TraceSettings.ts"
import * as Tracing from "../trace/Tracing.ts"

export interface ServerMetadata {
  readonly name: string
  readonly version: string
  readonly extensions: ReadonlyArray<string>
}

export interface TensorMetadata {
  readonly name: string
  readonly datatype: string
  /** Shape with the batch dimension; -1 for a variable extent. */
  readonly shape: ReadonlyArray<number>
}

export interface ModelMetadata {
  readonly name: string
  readonly versions: ReadonlyArray<string>
  readonly platform: string
  readonly inputs: ReadonlyArray<TensorMetadata>
  readonly outputs: ReadonlyArray<TensorMetadata>
  /** The declared contract; undefined if it says no more than metadata and configuration. */
  readonly contract: ContractMessage.ContractMessage
}

export interface Gateway extends InferenceDispatch.CountedDispatch {
  readonly isLive: () => boolean
  /** Readiness: the server is neither starting nor stopping and, with `strictReadiness`, every model is ready. */
  readonly isReady: () => boolean
  /** As `isReady`. With `strictReadiness`, the code of the models is asked too, such as `is_ready` in Python. */
  readonly serverReady: Effect.Effect<boolean>
  readonly metadata: ServerMetadata
  readonly modelReady: (name: string, version: string) => Effect.Effect<boolean, InferenceError>
  readonly modelMetadata: (name: string, version: string) => Result.Result<ModelMetadata, InferenceError>
  readonly modelConfiguration: (name: string, version: string) => Result.Result<ModelConfig, InferenceError>
  /** Statistics of models. An empty `version` selects all versions, an empty `name` all models. */
  readonly modelStatistics: (name: string, version: string) => Result.Result<ModelStatisticsResponse, InferenceError>
  readonly repositoryIndex: (
    request: RepositoryIndex.IndexRequest,
  ) => Effect.Effect<ReadonlyArray<IndexEntry>, InferenceError>
  /** The index without a look at the directories of a repository. */
  readonly index: () => ReadonlyArray<IndexEntry>
  /** Where changes of the models in a repository come from. */
  readonly controlMode: () => OpenRepository["mode"]
  /** Returns the control of a repository; an empty name selects the only repository. */
  readonly repositoryControl: (repository: string) => Result.Result<Control, InferenceError>
  /** Applies changes to the trace settings of a model, and returns the settings. An empty name selects all models. */
  readonly traceSettings: (model: string, changes: TraceChanges) => Result.Result<TraceSettings, InferenceError>
  readonly tracing: Tracing.Tracing
  /** Undefined where requests have none. */
  readonly spans: SpanSource | undefined
  /** Log settings of the server; they can change. */
  readonly logging: LogSettings.LogControl
  /** Takes reports of limits that acted, from all front ends. */
  readonly limits: LimitReports.LimitReports
  /** Refuses inferences that all front ends read too late. */
  readonly lateReading: LateReading
  /** Open connections of all front ends. */
  readonly connections: OpenConnections
  /** Memory that callers make the server hold, through all front ends. */
  readonly memory: MemoryBudget
  /** Shared memory regions that clients have registered. */
  readonly sharedMemory: SharedMemory.SharedMemory
  /** The models that requests reach now, and their changes. */
  readonly models: Pick<ModelStore, "models" | "onChange" | "versionOf">
  /** Returns a model, for front ends that need its properties before a request. */
  readonly model: (name: string, version: string) => Result.Result<RunningModel, InferenceError>
  /** Aborted when clients should move to another server: a stop will begin, and requests are still answered. */
  readonly leaving: AbortSignal
  /** Aborted when a stop begins. */
  readonly stopping: AbortSignal
  /** Aborted in a stop when open streams should take no further requests. */
  readonly endingStreams: AbortSignal
  /** Aborted shortly before the end of a stop: a request that is complete only now is too late. */
  readonly refusing: AbortSignal
  /** Marks the startup as complete: all initial models are loaded. */
  readonly started: () => void
  /** Readiness off, for good. Requests and new sequences are still answered. */
  readonly leave: () => void
  /** Readiness off, for good. Completes once the sequences of all models are over; new ones are refused. */
  readonly endSequences: Effect.Effect<void>
  /** Readiness off, for good. What still comes is the front ends' to answer or to refuse. */
  readonly beginDrain: () => void
  /** Aborts `endingStreams`. */
  readonly endStreams: () => void
  /** Aborts `refusing`. */
  readonly refuse: () => void
}

/** The extensions of the protocol that work here. */
const extensions = [
  "classification",
  "sequence",
  "model_repository",
  "model_repository(unload_dependents)",
  "schedule_policy",
  "model_configuration",
  "system_shared_memory",
  "cuda_shared_memory",
  "binary_tensor_data",
  "parameters",
  "statistics",
  "trace",
  "logging",
  "model_metadata(contract)",
]

export const make = (
  store: ModelStore,
  options: {
    readonly id: string
    readonly version: string
    /** Log settings. Default: those of a server without log options. */
    readonly logging?: LogSettings.LogControl
    /** Default: nothing is traced. */
    readonly tracing?: Tracing.Tracing
    /** Default: requests have no spans. */
    readonly spans?: SpanSource | undefined
    /** Default: reports go nowhere. */
    readonly limits?: LimitReports.LimitReports
    /** Default: that of the event loop. */
    readonly lateReading?: LateReading
    /** Default: none is allowed. */
    readonly sharedMemory?: SharedMemory.SharedMemory
    /** Memory that callers may make the server hold, in bytes. Default: any number. */
    readonly maxInFlightSize?: number
    /** Model repository. Default: none. */
    readonly repository?: OpenRepository
    /** Requires all models to be ready before the server reports ready. Default true. */
    readonly strictReadiness?: boolean
    /** Reports not ready until `started` is called. Default false. */
    readonly isStarting?: boolean
  },
): Gateway => {
  const { sharedMemory = SharedMemory.disabled, tracing = Tracing.disabled, maxInFlightSize = Infinity } = options
  const { repository = noRepository, strictReadiness = true } = options
  const isComplete = () => store.models.every((model) => model.life.isReady()) && repository.isReady()
  const leaving = new AbortController()
  const stopping = new AbortController()
  const endingStreams = new AbortController()
  const refusing = new AbortController()
  let { isStarting = false } = options
  let isEnding = false

  const { limits = LimitReports.none } = options
  const memory = new MemoryBudget(maxInFlightSize, limits)
  const dispatch = InferenceDispatch.make(store, sharedMemory, memory.unattributed)
  const { spans } = options
  const { infer, stream } = traced(spans === undefined ? dispatch : spanned(dispatch, spans), tracing)

  const isReady = () =>
    !isStarting &&
    !isEnding &&
    !leaving.signal.aborted &&
    !stopping.signal.aborted &&
    repository.isLive() &&
    (!strictReadiness || isComplete())
  const probes = Effect.suspend(() =>
    Effect.all(
      store.models.map(({ life }) => life.probe),
      { concurrency: "unbounded" },
    ),
  )

  return {
    isLive: () => repository.isLive(),
    isReady,
    serverReady: Effect.suspend(() => {
      if (!isReady() || !strictReadiness) return Effect.succeed(isReady())
      // A stop may begin meanwhile.
      return Effect.map(probes, (all) => all.every((ready) => ready) && isReady())
    }),
    metadata: { name: options.id, version: options.version, extensions },
    repositoryIndex: (request) => RepositoryIndex.index(store, repository, request),
    index: () => RepositoryIndex.all(store, repository),
    controlMode: () => repository.mode,
    repositoryControl: (chosen) => RepositoryIndex.control(repository, chosen),
    tracing,
    traceSettings: (model, changes) =>
      model === "" || store.versions(model).length > 0
        ? Result.succeed(tracing.change(model, changes))
        : Result.fail(new InvalidRequest({ message: `Request for unknown model : ${model}` })),
    logging: options.logging ?? LogSettings.make(),
    limits,
    lateReading: options.lateReading ?? new LateReading(limits),
    connections: new OpenConnections(),
    memory,
    models: store,
    sharedMemory,
    model: store.get,
    modelReady: (name, version) => {
      if (Result.isFailure(store.resolve(name))) return Effect.succeed(false)
      const found = store.get(name, version)
      if (Result.isSuccess(found)) {
        return stopping.signal.aborted ? Effect.succeed(false) : found.success.life.probe
      }
      // A known model that is absent is not ready, which is not an error.
      const isAbsent = found.failure._tag === "ModelNotReady" || (version === "" && store.absent(name).length > 0)
      return isAbsent ? Effect.succeed(false) : Effect.fail(found.failure)
    },
    modelMetadata: (name, version) =>
      Result.map(store.get(name, version), (model) => ({
        name,
        versions:
          version === "" ? store.versions(name).map((other) => other.description.version) : [model.description.version],
        platform: model.description.platform,
        inputs: model.description.signature.inputs.map((spec) => tensorMetadata(model, spec)),
        outputs: model.description.signature.outputs.map((spec) => tensorMetadata(model, spec)),
        contract: ContractMessage.make(model.description),
      })),
    modelConfiguration: (name, version) =>
      Result.map(
        store.get(name, version),
        (model) => store.versionOf(model)?.configuration?.() ?? ConfigurationMessage.make(model),
      ),
    modelStatistics: (name, version) => Result.map(measured(store, name, version), StatisticsMessage.make),
    spans,
    infer,
    stream,
    inFlight: dispatch.inFlight,
    leaving: leaving.signal,
    stopping: stopping.signal,
    endingStreams: endingStreams.signal,
    refusing: refusing.signal,
    started: () => {
      isStarting = false
    },
    leave: () => leaving.abort(),
    endSequences: Effect.suspend(() => {
      isEnding = true
      const ends = store.models.flatMap(({ life }) => life.endSequences ?? [])
      return Effect.all(ends, { concurrency: "unbounded", discard: true })
    }),
    beginDrain: () => stopping.abort(),
    endStreams: () => endingStreams.abort(),
    refuse: () => refusing.abort(),
  }
}

/** The models whose statistics these are. What is not there is an invalid request here, in the protocol's own words. */
const measured = (
  store: RegisteredModels,
  name: string,
  version: string,
): Result.Result<ReadonlyArray<RunningModel>, InferenceError> => {
  if (name === "") return Result.succeed(store.models)
  const versions = store.versions(name)
  if (versions.length === 0) return notAvailable(`requested model '${name}' is not available`)
  if (version === "") return Result.succeed(versions)
  const found = store.get(name, version)
  if (Result.isSuccess(found)) return Result.succeed([found.success])
  if (found.failure._tag !== "ModelNotFound") return Result.fail(found.failure)
  return notAvailable(`requested model version is not available for model '${name}'`)
}

const notAvailable = (message: string) => Result.fail(new InvalidRequest({ message }))

const tensorMetadata = (model: RunningModel, spec: TensorSpec): TensorMetadata => ({
  name: spec.name,
  datatype: spec.datatype,
  shape: model.description.maxBatchSize > 0 ? [-1, ...wireDims(spec.dims)] : wireDims(spec.dims),
})
