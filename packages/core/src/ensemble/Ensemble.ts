/**
 * A model that is made of others: its steps, each of which asks a model that runs beside it, so that its requests share queues
 * and batches with all others that the model has. Which models these are may change while it runs: a request ends with those
 * that it began with, and none of them is released before.
 *
 * What the steps of one request do is EnsembleRequest.ts's business.
 */
import { constVoid } from "effect/Function"
import { Clock, Effect, Latch, Result } from "effect"
import type { ModelConfig } from "@nereid/protocol/model_config"
import * as ResponseCache from "../cache/ResponseCache.ts"
import { CallCycleDetector } from "../request/CallCycleDetector.ts"
import { type InferenceError, ModelNotReady } from "../error/InferenceError.ts"
import { type FailureReason, Statistics } from "../metrics/ModelStatistics.ts"
import type { Batching } from "../model/Batching.ts"
import { type Cancel, errorPrefix, type Reply, type Request } from "../request/Request.ts"
import { type Release, type RunningModel, Watcher } from "../running/RunningModel.ts"
import * as Deadlines from "../scheduler/Deadlines.ts"
import { counted } from "../scheduler/ResponseCount.ts"
import { stopping } from "../scheduler/RunningBatch.ts"
import { type EnsembleDefinition, type EnsembleGraph, link, pruned } from "./EnsembleGraph.ts"
import { EnsembleRequest } from "./EnsembleRequest.ts"
import { StepDurations } from "./StepDurations.ts"

export interface EnsembleOptions extends EnsembleDefinition {
  /** A positive integer, in digits. */
  readonly version: string
  readonly batching: Batching
  /** Whether it answers what it was asked before; not where it is decoupled. Default false. */
  readonly responseCache?: boolean
  /**
   * Responses of a decoupled step that may be on their way through the steps behind it, and to the caller, before it is held up;
   * 0 for 16, or for any number where one of the steps behind it may ask the same model, which could wait for itself then.
   */
  readonly maxInflightRequests: number
  /** The models of the steps as they are now, in their order; or why they are none for it. */
  readonly resolve: () => Result.Result<ReadonlyArray<RunningModel>, string>
  /** As the configuration endpoint shows it. */
  readonly configuration: (decoupled: boolean) => ModelConfig
}

export interface Ensemble {
  readonly running: RunningModel
  /** Looks for its models anew; tells why it cannot run with those there are now. */
  readonly relink: () => string | undefined
}

/** An ensemble with the models of a time. */
interface Linked {
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
interface Emitting {
  readonly request: Request
  readonly running: EnsembleRequest
}

const defaultMaxInflight = 16

/** Choices of outputs whose graphs are kept. */
const mostParts = 64

/** Runs, once it is linked, until the scope closes. */
export const make = Effect.fnUntraced(function* (options: EnsembleOptions) {
  const { name, version, signature, maxBatchSize, batching } = options
  const clock = yield* Clock.Clock
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  const nanos = () => Number(clock.monotonicTimeNanosUnsafe())
  const statistics = new Statistics()
  const asker = new CallCycleDetector(name)
  const drained = Latch.makeUnsafe(true)
  let isStopped = false
  let unanswered = 0
  let linked: Linked | undefined
  /** Which models it has, in the count of those that it had. */
  let epoch = 0
  /** What it is for those who still have it when it is not linked any more. */
  let isDecoupled = false
  yield* Effect.addFinalizer(() => Effect.sync(() => void (isStopped = true)))

  const relink = (): string | undefined => {
    const resolved = Result.flatMap(options.resolve(), (models) =>
      Result.map(link(options, models), (graph) => ({ models, graph })),
    )
    if (Result.isFailure(resolved)) {
      linked = undefined
      return resolved.failure
    }
    const { models, graph } = resolved.success
    if (linked?.models.every((model, index) => model === models[index])) return undefined
    isDecoupled = models.some(({ decoupled }) => decoupled)
    if (isDecoupled && options.responseCache === true) {
      linked = undefined
      return `Response Cache does not currently support model ${name} with 'Decoupled' transaction policy. Please disable the response cache.`
    }
    const maxInflight = options.maxInflightRequests || (mayWaitForItself(graph) ? Infinity : defaultMaxInflight)
    const isPassedOn = graph.outputs.some((position) => position < signature.inputs.length)
    const keepsInputs = isPassedOn || models.some(({ keepsInputs }) => keepsInputs)
    epoch += 1
    linked = { models, graph, isDecoupled, keepsInputs, maxInflight, parts: new Map(), inFlight: 0, releases: [] }
    return undefined
  }

  const began = () => {
    if (unanswered === 0) drained.closeUnsafe()
    unanswered += 1
  }
  const ended = () => {
    unanswered -= 1
    if (unanswered === 0) drained.openUnsafe()
  }
  const enter = (link: Linked) => {
    began()
    if (link.inFlight === 0) link.releases = [...new Set(link.models)].map((model) => model.keep?.() ?? constVoid)
    link.inFlight += 1
  }
  const leave = (link: Linked) => {
    link.inFlight -= 1
    if (link.inFlight === 0) for (const release of link.releases) release()
    ended()
  }

  /** A caller that takes nothing holds no step up, whose deadline would come. */
  const deadlines = yield* Deadlines.make<Emitting>(({ running }) => running.expire())

  const asked = (request: Request, reply: Reply): Cancel => {
    const refusal = isStopped ? stopping() : linked === undefined ? notLinked(request) : undefined
    const link = linked
    if (link === undefined || refusal !== undefined) {
      statistics.failed("REJECTED", 0)
      reply(Result.fail(refusal ?? notLinked(request)))
      return constVoid
    }
    const startedAt = nanos()
    const durations = new StepDurations()
    const responding = { queuedAt: startedAt, respondedAt: startedAt, responses: 0, done: false }
    request.trace?.at("QUEUE_START", startedAt)
    statistics.executing(request.rows, 1)
    enter(link)
    const end = () => {
      responding.done = true
      if (link.isDecoupled) deadlines.delete(emitting)
      leave(link)
    }
    const { emit } = request
    const running = new EnsembleRequest({
      graph: partOf(link, request.requestedOutputs ?? []),
      request:
        link.isDecoupled && emit !== undefined
          ? { ...request, emit: counted(emit, () => responding, statistics, nanos) }
          : request,
      asker,
      decoupled: link.isDecoupled,
      maxInflight: link.maxInflight,
      trace: durations,
      nanos,
      runFork,
      end: (outcome) => {
        const total = nanos() - startedAt
        if (Result.isSuccess(outcome)) {
          statistics.executed(request.rows, durations, clock.currentTimeMillisUnsafe())
          statistics.succeeded(total, 0, durations)
          if (link.isDecoupled) {
            statistics.response(responding.responses)?.emptyResponse.add(nanos() - responding.respondedAt)
          }
        } else {
          statistics.failed(reasonOf(outcome.failure), total)
          if (link.isDecoupled) statistics.response(responding.responses)?.fail.add(nanos() - responding.respondedAt)
        }
        end()
        reply(outcome)
      },
    })
    const emitting: Emitting = { request, running }
    if (link.isDecoupled) deadlines.add(emitting)
    running.start()
    return () => {
      if (responding.done) return
      running.cancel()
      statistics.failed("CANCELED", nanos() - startedAt)
      if (link.isDecoupled) statistics.response(responding.responses)?.cancel.add(nanos() - responding.respondedAt)
      end()
    }
  }

  const submit = options.responseCache
    ? yield* ResponseCache.make({
        model: name,
        readsRequest: true,
        queueing: undefined,
        epoch: () => epoch,
        statistics,
        submit: asked,
      })
    : asked

  const notLinked = (request: Request) =>
    new ModelNotReady({
      message: `${errorPrefix(request)}model '${name}' version ${version} has lost a model of its steps`,
    })

  const running: RunningModel = {
    name,
    version,
    platform: "ensemble",
    signature,
    maxBatchSize,
    get decoupled() {
      return isDecoupled
    },
    get keepsInputs() {
      return linked?.keepsInputs ?? true
    },
    batching,
    instanceGroups: [],
    statistics,
    asker,
    isReady: () => !isStopped && linked !== undefined && linked.models.every((model) => model.isReady()),
    pending: () => 0,
    responseCache: options.responseCache === true,
    keep: () => {
      let isKept = true
      began()
      return () => {
        if (isKept) ended()
        isKept = false
      }
    },
    drained: drained.await,
    submit,
    get configuration() {
      return options.configuration(isDecoupled)
    },
  }
  const watch = yield* Watcher
  watch(running)
  const ensemble: Ensemble = { running, relink }
  return ensemble
})

/** The graph for these outputs alone; none for all. */
const partOf = ({ graph, parts }: Linked, requestedOutputs: ReadonlyArray<string>): EnsembleGraph => {
  if (requestedOutputs.length === 0 || graph.outputs.length === 1) return graph
  const key = JSON.stringify(requestedOutputs)
  let part = parts.get(key)
  if (part === undefined) {
    part = pruned(graph, requestedOutputs)
    if (parts.size < mostParts) parts.set(key, part)
  }
  return part
}

/** Whether a decoupled step that is held up may have the instance that a step behind it needs. */
const mayWaitForItself = ({ steps }: EnsembleGraph): boolean => {
  const isNested = ({ platform }: RunningModel) => platform === "ensemble"
  return steps.some(
    ({ model, level }) =>
      model.decoupled &&
      steps.some((other) => other.level > level && (other.model === model || isNested(other.model) || isNested(model))),
  )
}

const reasonOf = ({ _tag }: InferenceError): FailureReason => {
  if (_tag === "Cancelled" || _tag === "DeadlineExceeded") return "CANCELED"
  if (_tag === "QueueFull" || _tag === "QueueTimeout") return "REJECTED"
  const isFailure = _tag === "ExecutionFailed" || _tag === "Unrecoverable" || _tag === "DeclaredFailure"
  return isFailure ? "BACKEND" : "OTHER"
}
