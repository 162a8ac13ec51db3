/**
 * Simulates the batching of a model under a given traffic, before deployment, with the server's queue, dispatcher and
 * policies on a virtual clock. An hour takes seconds. The caller gives the cost of a batch. Sockets, codecs and other
 * load on the machine are excluded, so measure the chosen settings with `nereid bench`.
 *
 * ```ts
 * const outcomes = Simulation.run(Digits, {
 *   traffic: Simulation.poisson({ perSecond: 2000, seconds: 60 }),
 *   cost: (rows) => 1.5 + 0.1 * rows,
 *   over: { maxQueueDelay: [0, 1, 2, 5], maxBatchSize: [8, 16, 32] },
 * })
 * ```
 */
import { Duration, Effect, Exit, Result, Scope } from "effect"
import { constVoid } from "effect/Function"
import type { Definition } from "../model/Definition.ts"
import type { Fields } from "../model/Field.ts"
import { parameters } from "../model/QueuedCall.ts"
import { DeadlineExceeded, type InferenceError, QueueFull, QueueTimeout } from "../error/InferenceError.ts"
import { type Cancel, noParameters, type Request, type Response } from "../request/Request.ts"
import { ModelStatistics } from "../metrics/ModelStatistics.ts"
import * as Batch from "../batch/Batch.ts"
import * as Padding from "../batch/Padding.ts"
import * as Scheduler from "../scheduler/Scheduler.ts"
import { Agenda } from "./Agenda.ts"
import { SimulatedInstance } from "./SimulatedInstance.ts"
import { type Latency, latencyOf, requireInteger } from "./SimulatedNumber.ts"
import type { Arrival } from "./Traffic.ts"
import * as VirtualTime from "./VirtualTime.ts"

export {
  runSequences,
  type SequenceOutcome,
  type SequencePolicy,
  type SequenceSimulationOptions,
} from "./SequenceSimulation.ts"
export { type SequenceArrival, sequences, type SequenceTrafficOptions } from "./SequenceTraffic.ts"
export { type Arrival, constant, poisson, type TrafficOptions } from "./Traffic.ts"

/** Traffic, cost of a batch and policies of a simulation. */
export interface SimulationOptions {
  /** Comes to an end, and is gone through once for each policy. */
  readonly traffic: Iterable<Arrival>
  /** Duration of a batch with this number of rows, padding included. A number is in milliseconds. */
  readonly cost: (rows: number) => Duration.Input
  /** How many execute at the same time, each a batch. Default 1. */
  readonly instances?: number
  /** Values to try in place of the declared ones, in every combination. Default: the model as declared. */
  readonly over?: {
    readonly maxQueueDelay?: ReadonlyArray<Duration.Input>
    readonly maxBatchSize?: ReadonlyArray<number>
    readonly instances?: ReadonlyArray<number>
  }
}

/** One of the policies that were tried. */
export interface Policy {
  readonly maxQueueDelay: Duration.Duration
  readonly maxBatchSize: number
  readonly instances: number
}

export interface Outcome extends Policy {
  readonly requests: number
  readonly answered: number
  /**
   * They found the queue full, waited for longer than they may, have more rows than a batch, or would have missed their
   * deadline by the scheduler's prediction.
   */
  readonly refused: {
    readonly full: number
    readonly late: number
    readonly large: number
    readonly predicted: number
  }
  /** Their deadline passed before their answer. */
  readonly expired: number
  /** Their caller left before their answer. */
  readonly left: number
  /** Milliseconds from arrival to response, of the answered requests; NaN without any. */
  readonly latency: Latency
  readonly batches: number
  /** Mean rows per batch; NaN without batches. */
  readonly meanRows: number
  /** The part of the time in which the instances worked, from 0 to 1. */
  readonly busy: number
  /** Milliseconds from the beginning to the last answer. */
  readonly took: number
}

/** Any class that `Model.Service` makes. */
export interface SimulatedModel {
  readonly definition: Pick<Definition<Fields, Fields>, "name" | "maxBatchSize" | "batching">
}

/**
 * An outcome for each policy, in the order of `over`. Blocks the thread until it is done: some microseconds for each
 * request.
 * @throws RangeError if traffic runs backwards, or a number is out of range
 */
export const run = (model: SimulatedModel, options: SimulationOptions): ReadonlyArray<Outcome> =>
  policies(model, options).map((policy) => simulate(model, options, policy))

const policies = ({ definition }: SimulatedModel, { instances = 1, over = {} }: SimulationOptions) =>
  (over.maxQueueDelay ?? [definition.batching.maxQueueDelay]).flatMap((delay) =>
    (over.maxBatchSize ?? [definition.maxBatchSize]).flatMap((maxBatchSize) =>
      (over.instances ?? [instances]).map((instances): Policy => {
        const maxQueueDelay = Duration.fromInputUnsafe(delay)
        requireInteger("maxBatchSize", maxBatchSize, 0)
        requireInteger("instances", instances, 1)
        return { maxQueueDelay, maxBatchSize, instances }
      }),
    ),
  )

const simulate = ({ definition }: SimulatedModel, { traffic, cost }: SimulationOptions, policy: Policy): Outcome => {
  const { batching, name } = definition
  const agenda = new Agenda()
  const maxBatchSize = Math.max(1, policy.maxBatchSize)
  const instances = Array.from({ length: policy.instances }, (_, index) => new SimulatedInstance(index, agenda, cost))
  const padding = Padding.rule({ padTo: paddedTo(batching.padTo, maxBatchSize), ragged: [] })
  const statistics = new ModelStatistics()
  const scope = Scope.makeUnsafe()
  const make = Scheduler.make({
    model: name,
    instances,
    statistics,
    groupKey: (request) => request.id,
    bisects: false,
    batchOf: (requests) => Batch.make(requests, padding?.(requests)),
    maxBatchSize: batching.shared ? maxBatchSize : 1,
    preferredBatchSizes: batching.preferredBatchSizes.filter((size) => size <= maxBatchSize),
    maxQueueDelay: Duration.toMillis(policy.maxQueueDelay) * 1e6,
    maxQueueSize: batching.maxQueueSize,
    groupOrder: batching.groupOrder,
    queueing: batching.queueing,
    latencyTarget: batching.latencyTarget && Duration.toMillis(batching.latencyTarget) * 1e6,
  })
  const scheduler = Effect.runSync(Effect.provideContext(Scope.provide(make, scope), VirtualTime.context(agenda)))
  const tally = new Tally()
  for (const arrival of traffic) {
    const at = arrival.at * 1e6
    if (!(at >= agenda.now))
      throw new RangeError(`A request comes at ${arrival.at} ms, after one at ${agenda.now / 1e6}.`)
    agenda.runUntil(at)
    tally.requests += 1
    if ((arrival.rows ?? 1) > maxBatchSize) {
      tally.large += 1
      continue
    }
    let leave: Cancel | undefined
    const stay =
      arrival.patience === undefined
        ? constVoid
        : agenda.after(Duration.toMillis(Duration.fromInputUnsafe(arrival.patience)) * 1e6, () => {
            tally.left += 1
            leave?.()
          })
    leave = scheduler.submit(request(arrival), (outcome) => {
      stay()
      tally.add(agenda.now - at, agenda.now, outcome)
    })
  }
  agenda.run()
  Effect.runSync(Scope.close(scope, Exit.void))
  return { ...policy, ...tally.outcome(instances, statistics.queueRefusals.predicted) }
}

/** The sizes that the model declares, those of a smaller batch. */
const paddedTo = (sizes: ReadonlyArray<number>, maxBatchSize: number): ReadonlyArray<number> =>
  sizes.length === 0 ? [] : [...sizes.filter((size) => size < maxBatchSize), maxBatchSize]

/** A request of the simulation. Its group represents its shapes and values. */
const request = ({ at, rows = 1, group = "", timeout, ...queued }: Arrival): Request => {
  requireInteger("rows", rows, 1)
  const requestParameters = parameters(noParameters, queued)
  if (Result.isFailure(requestParameters))
    throw new RangeError(`${requestParameters.failure.field} ${requestParameters.failure.message}`)
  const deadline = timeout === undefined ? undefined : at + Duration.toMillis(Duration.fromInputUnsafe(timeout))
  return { id: group, inputs: [], rows, parameters: requestParameters.success, deadline }
}

/** How requests have ended. */
class Tally {
  requests = 0
  large = 0
  left = 0
  #full = 0
  #late = 0
  #expired = 0
  #end = 0
  readonly #latencies: Array<number> = []

  add(nanos: number, now: number, outcome: Result.Result<Response, InferenceError>) {
    this.#end = now
    if (Result.isSuccess(outcome)) this.#latencies.push(nanos / 1e6)
    else if (outcome.failure instanceof QueueFull) this.#full += 1
    else if (outcome.failure instanceof QueueTimeout) this.#late += 1
    else if (outcome.failure instanceof DeadlineExceeded) this.#expired += 1
    else throw new Error(`A simulated request failed: ${outcome.failure.message} This is a bug.`)
  }

  outcome(instances: ReadonlyArray<SimulatedInstance>, predicted: number): Omit<Outcome, keyof Policy> {
    const sum = (count: (instance: SimulatedInstance) => number) =>
      instances.reduce((total, instance) => total + count(instance), 0)
    const batches = sum((instance) => instance.batches)
    return {
      requests: this.requests,
      answered: this.#latencies.length,
      refused: { full: this.#full - predicted, late: this.#late, large: this.large, predicted },
      expired: this.#expired,
      left: this.left,
      latency: latencyOf(this.#latencies),
      batches,
      meanRows: sum(({ rows }) => rows) / batches,
      busy: this.#end === 0 ? 0 : sum(({ worked }) => worked) / (this.#end * instances.length),
      took: this.#end / 1e6,
    }
  }
}
