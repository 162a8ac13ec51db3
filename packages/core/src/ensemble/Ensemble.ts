/**
 * A model composed of other models: each step calls a model of the same server, and shares its queue and batches with
 * other callers. The models may be replaced while the ensemble runs. A request keeps its models until it ends; they are
 * released afterwards.
 *
 * EnsembleRequest.ts executes the steps of one request.
 */
import { Clock, Effect, Result } from "effect"
import { constVoid } from "effect/Function"
import * as ResponseCache from "../cache/ResponseCache.ts"
import { type InferenceError, ModelNotReady } from "../error/InferenceError.ts"
import { type FailureReason, ModelStatistics } from "../metrics/ModelStatistics.ts"
import type { Batching } from "../model/Batching.ts"
import type { RequiredSequence } from "../model/Sequencing.ts"
import { CallCycleDetector } from "../request/CallCycleDetector.ts"
import { type Cancel, type Emit, errorPrefix, noParameters, type Reply, type Request } from "../request/Request.ts"
import * as SessionParameters from "../request/SessionParameters.ts"
import type { ModelCalls } from "../running/CallableModel.ts"
import * as ModelDescription from "../running/ModelDescription.ts"
import * as ModelLife from "../running/ModelLife.ts"
import { RunningModel, Watcher } from "../running/RunningModel.ts"
import { AlarmClock } from "../scheduler/AlarmClock.ts"
import { Deadlines, type PendingRequest } from "../scheduler/Deadlines.ts"
import { type Release, OpenRequests } from "../running/OpenRequests.ts"
import { counted, type ResponseProgress } from "../scheduler/ResponseCount.ts"
import { stopping } from "../error/Refusal.ts"
import type { Signature } from "../tensor/TensorSpec.ts"
import * as SubmitPipeline from "../scheduler/SubmitPipeline.ts"
import type { Stage, Submit } from "../scheduler/SubmitPipeline.ts"
import { type EnsembleDefinition, type EnsembleGraph, link, pruned } from "./EnsembleGraph.ts"
import { EnsembleRequest } from "./EnsembleRequest.ts"
import { StepDurations } from "./StepDurations.ts"

export interface EnsembleOptions extends EnsembleDefinition {
  /** A positive integer, in digits. */
  readonly version: string
  readonly batching: Batching
  /** Whether repeated requests are answered from a cache; not for decoupled ensembles. Default false. */
  readonly responseCache?: boolean
  /**
   * Maximum number of pending responses of a decoupled step: in later steps, or on the way to the caller. The step is
   * paused beyond it. 0 means the default: 16, or unlimited if a later step may call the same model, which could
   * otherwise deadlock.
   */
  readonly maxInflightRequests: number
  /** The current models of the steps, in their order; or the reason why the ensemble cannot run with them. */
  readonly resolve: () => Result.Result<ReadonlyArray<RunningModel>, string>
}

export interface Ensemble {
  readonly running: RunningModel
  /** Resolves its models again; returns why it cannot run with those there are now. */
  readonly relink: () => string | undefined
}

/** An ensemble with the models of a time. */
interface LinkedModels {
  readonly models: ReadonlyArray<RunningModel>
  readonly graph: EnsembleGraph
  readonly isDecoupled: boolean
  readonly keepsInputs: boolean
  readonly maxInflight: number
  /** Graphs for some of the outputs, by their names. */
  readonly parts: Map<string, EnsembleGraph>
  /** Requests that are not answered. */
  inFlight: number
  releases: ReadonlyArray<Release>
}

/** A request whose responses go to its caller one by one. */
interface EmittingRequest extends PendingRequest<EmittingRequest> {
  readonly running: EnsembleRequest
}

const defaultMaxInflight = 16

/** Choices of outputs whose graphs are kept. */
const maxParts = 64

/** Runs, once it is linked, until the scope closes. */
export const make = Effect.fnUntraced(function* (options: EnsembleOptions) {
  const { name, responseCache = false } = options
  const clock = yield* Clock.Clock
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  // A caller that takes nothing holds no step up, so its deadline must end the request.
  const deadlines = new Deadlines<EmittingRequest>(yield* AlarmClock.make, ({ running }) => running.expire())
  const statistics = new ModelStatistics()
  const links = new EnsembleLinks(options)
  const cache = responseCache
    ? (yield* ResponseCache.make({
        model: name,
        readsRequest: true,
        queueing: undefined,
        epoch: () => links.epoch,
        statistics,
        reasonOf,
      })).stage
    : undefined
  const calls = new EnsembleCalls({ options, links, statistics, clock, runFork, deadlines, cache })
  yield* Effect.addFinalizer(() => Effect.sync(() => calls.stop()))
  const declaration = { ...options, signature: labelled(options.signature, links) }
  const running = new RunningModel({
    description: {
      ...ModelDescription.make(declaration, { platform: "ensemble", statistics, responseCache }),
      get requiredSequence() {
        return links.requiredSequence
      },
    },
    calls,
    life: ModelLife.make({
      isReady: () => !calls.isStopped && links.current?.models.every(({ life }) => life.isReady()) === true,
      problem: () => "one of its models is not ready",
      pending: () => 0,
      drained: calls.drained,
      keep: () => calls.keep(),
    }),
  })
  const watch = yield* Watcher
  watch(running)
  const ensemble: Ensemble = { running, relink: () => links.relink() }
  return ensemble
})

/** The signature, whose outputs without labels have those of the steps that make them now. */
const labelled = ({ inputs, outputs }: Signature, links: EnsembleLinks): Signature => ({
  inputs,
  outputs: outputs.map((spec, position) =>
    spec.labels === undefined
      ? {
          ...spec,
          get labels() {
            return links.labels(position)
          },
        }
      : spec,
  ),
})

/** The current models of an ensemble. */
class EnsembleLinks {
  readonly #options: EnsembleOptions
  /** Undefined while it cannot run. */
  current: LinkedModels | undefined
  /** Counts the sets of models that it has had. */
  epoch = 0
  /** Whether the last models were decoupled, for callers that still hold the ensemble when it is no longer linked. */
  isDecoupled = false

  constructor(options: EnsembleOptions) {
    this.#options = options
  }

  /** The labels of the step that makes this output; undefined if it has none. */
  labels(output: number): ReadonlyArray<string> | undefined {
    const { graph } = this.current ?? {}
    const tensor = graph?.outputs[output] ?? -1
    for (const { model, outputs } of graph?.steps ?? []) {
      const position = outputs.indexOf(tensor)
      if (position >= 0) return model.description.signature.outputs[position]?.labels
    }
    return undefined
  }

  /** The sequences of those steps that have the least time to wait. */
  get requiredSequence(): RequiredSequence | undefined {
    const all = this.current?.models.flatMap(({ description }) => description.requiredSequence ?? []) ?? []
    return all.length === 0 ? undefined : { maxIdle: Math.min(...all.map(({ maxIdle }) => maxIdle)) }
  }

  relink(): string | undefined {
    const { name, signature, responseCache, maxInflightRequests } = this.#options
    const resolved = Result.flatMap(this.#options.resolve(), (models) =>
      Result.map(link(this.#options, models), (graph) => ({ models, graph })),
    )
    if (Result.isFailure(resolved)) {
      this.current = undefined
      return resolved.failure
    }
    const { models, graph } = resolved.success
    if (this.current?.models.every((model, index) => model === models[index])) return undefined
    this.isDecoupled = models.some(({ calls }) => calls.decoupled)
    if (this.isDecoupled && responseCache === true) {
      this.current = undefined
      return `Response Cache does not currently support model ${name} with 'decoupled' transaction policy. Please disable the response cache.`
    }
    const isPassedOn = graph.outputs.some((position) => position < signature.inputs.length)
    this.epoch += 1
    this.current = {
      models,
      graph,
      isDecoupled: this.isDecoupled,
      keepsInputs: isPassedOn || models.some(({ calls }) => calls.keepsInputs),
      maxInflight: maxInflightRequests || (mayWaitForItself(graph) ? Infinity : defaultMaxInflight),
      parts: new Map(),
      inFlight: 0,
      releases: [],
    }
    return undefined
  }
}

interface EnsembleCallsOptions {
  readonly options: EnsembleOptions
  readonly links: EnsembleLinks
  readonly statistics: ModelStatistics
  readonly clock: Clock.Clock
  readonly runFork: (effect: Effect.Effect<void>) => ReturnType<typeof Effect.runFork<void, never>>
  readonly deadlines: Deadlines<EmittingRequest>
  readonly cache: Stage | undefined
}

/** Calls of an ensemble, and the number of calls in flight. */
class EnsembleCalls implements ModelCalls {
  readonly timeout = undefined
  readonly cycles: CallCycleDetector
  readonly submit: Submit
  isStopped = false
  readonly #options: EnsembleCallsOptions
  readonly #openRequests = new OpenRequests()

  constructor(options: EnsembleCallsOptions) {
    this.#options = options
    this.cycles = new CallCycleDetector(options.options.name)
    this.submit = SubmitPipeline.make({ cache: options.cache }, (request, reply) => this.#submit(request, reply))
  }

  get decoupled(): boolean {
    return this.#options.links.isDecoupled
  }

  get emits(): boolean {
    return this.decoupled
  }

  get keepsInputs(): boolean {
    return this.#options.links.current?.keepsInputs ?? true
  }

  get drained(): Effect.Effect<void> {
    return this.#openRequests.drained
  }

  /** Keeps `drained` waiting until the result is called. */
  keep(): Release {
    return this.#openRequests.keep()
  }

  /** Rejects all future requests. */
  stop(): void {
    this.isStopped = true
  }

  #submit(request: Request, reply: Reply): Cancel {
    const { links, statistics, deadlines } = this.#options
    const link = links.current
    if (this.isStopped || link === undefined) {
      statistics.failed("REJECTED", 0)
      reply(Result.fail(this.isStopped ? stopping() : this.#notLinked(request)))
      return constVoid
    }
    if (SessionParameters.isClose(request.parameters)) return this.#close(link, request, reply)
    const startedAt = this.#nanos()
    const responding = { queuedAt: startedAt, respondedAt: startedAt, responses: 0, done: false }
    request.trace?.at("QUEUE_START", startedAt)
    statistics.executing(request.rows, 1)
    this.#enter(link)
    const end = () => {
      responding.done = true
      if (link.isDecoupled) deadlines.delete(emitting)
      this.#leave(link)
    }
    const running = this.#start(link, request, reply, responding, end)
    const emitting: EmittingRequest = { request, running }
    if (link.isDecoupled) deadlines.add(emitting)
    running.start()
    return () => {
      if (responding.done) return
      running.cancel()
      statistics.failed("CANCELED", this.#nanos() - startedAt)
      if (link.isDecoupled) {
        statistics.response(responding.responses)?.cancel.add(this.#nanos() - responding.respondedAt)
      }
      end()
    }
  }

  /** Ends the sequence of a caller that leaves its session, in each step. */
  #close(link: LinkedModels, request: Request, reply: Reply): Cancel {
    const steps = new Set(link.models.filter(hasSequences))
    let open = steps.size
    this.#enter(link)
    const closed = () => {
      if (open > 0) return
      this.#leave(link)
      reply(Result.succeed({ outputs: [], parameters: noParameters }))
    }
    for (const { calls, description } of steps) {
      const inputs = description.signature.inputs.map(() => undefined)
      calls.submit({ ...request, inputs }, () => {
        open -= 1
        closed()
      })
    }
    if (steps.size === 0) closed()
    return constVoid
  }

  #start(
    link: LinkedModels,
    request: Request,
    reply: Reply,
    responding: ResponseProgress,
    end: () => void,
  ): EnsembleRequest {
    const { statistics, clock, runFork } = this.#options
    const nanos = () => this.#nanos()
    const durations = new StepDurations()
    const { emit } = request
    let endsWithData = false
    const emitting: Emit | undefined =
      emit &&
      ((response, isLast = false) => {
        endsWithData = isLast
        return emit(response, isLast)
      })
    return new EnsembleRequest({
      graph: partOf(link, request.requestedOutputs ?? []),
      request:
        link.isDecoupled && emitting !== undefined
          ? { ...request, emit: counted(emitting, () => responding, statistics, nanos) }
          : request,
      cycles: this.cycles,
      decoupled: link.isDecoupled,
      maxInflight: link.maxInflight,
      trace: durations,
      nanos,
      runFork,
      end: (outcome) => {
        const total = nanos() - responding.queuedAt
        const response = link.isDecoupled ? statistics.response(responding.responses) : undefined
        if (Result.isSuccess(outcome)) {
          statistics.executed(request.rows, durations, clock.currentTimeMillisUnsafe())
          statistics.succeeded(total, 0, durations, request.id)
          if (!endsWithData) response?.ended(nanos() - responding.respondedAt)
        } else {
          statistics.failed(reasonOf(outcome.failure), total, request.id)
          response?.failed(nanos() - responding.respondedAt)
        }
        end()
        reply(outcome)
      },
    })
  }

  #nanos(): number {
    return Number(this.#options.clock.monotonicTimeNanosUnsafe())
  }

  /** Keeps the models of the link until its last request has been answered. */
  #enter(link: LinkedModels): void {
    this.#openRequests.begin()
    if (link.inFlight === 0) link.releases = [...new Set(link.models)].map(({ life }) => life.keep())
    link.inFlight += 1
  }

  #leave(link: LinkedModels): void {
    link.inFlight -= 1
    if (link.inFlight === 0) for (const release of link.releases) release()
    this.#openRequests.end()
  }

  #notLinked(request: Request): ModelNotReady {
    const { name, version } = this.#options.options
    return new ModelNotReady({
      message: `${errorPrefix(request)}model '${name}' version ${version} has a step whose model is no longer loaded`,
    })
  }
}

/** The part of the graph that these outputs require; the whole graph if none are named. */
const partOf = ({ graph, parts }: LinkedModels, requestedOutputs: ReadonlyArray<string>): EnsembleGraph => {
  if (requestedOutputs.length === 0 || graph.outputs.length === 1) return graph
  const key = JSON.stringify(requestedOutputs)
  let part = parts.get(key)
  if (part === undefined) {
    part = pruned(graph, requestedOutputs)
    if (parts.size < maxParts) parts.set(key, part)
  }
  return part
}

const hasSequences = ({ description: { sequencing, requiredSequence } }: RunningModel): boolean =>
  sequencing !== undefined || requiredSequence !== undefined

/** Whether a paused decoupled step may occupy the instance that a later step requires. */
const mayWaitForItself = ({ steps }: EnsembleGraph): boolean => {
  const isNested = ({ description }: RunningModel) => description.platform === "ensemble"
  return steps.some(
    ({ model, level }) =>
      model.calls.decoupled &&
      steps.some((other) => other.level > level && (other.model === model || isNested(other.model) || isNested(model))),
  )
}

/** The steps' own statistics have the reasons of their failures. */
const reasonOf = ({ _tag }: InferenceError): FailureReason => (_tag === "DeadlineExceeded" ? "CANCELED" : "OTHER")
