/**
 * Simulates sequences on a model, with the server's queue of sequences on a virtual clock: how many slots a strategy
 * needs, how large its batches are, and how long sequences wait. A sequence sends each request some time after the
 * response to the one before it.
 */
import { Duration, Effect, Exit, Result, Scope } from "effect"
import * as Batch from "../batch/Batch.ts"
import type { InferenceError } from "../error/InferenceError.ts"
import { ModelStatistics } from "../metrics/ModelStatistics.ts"
import type { Definition } from "../model/Definition.ts"
import type { Fields } from "../model/Field.ts"
import { sequenceDefaults, type Sequencing } from "../model/Sequencing.ts"
import * as IdleLimit from "../request/IdleLimit.ts"
import { noParameters, type Request } from "../request/Request.ts"
import * as SessionParameters from "../request/SessionParameters.ts"
import * as Scheduler from "../scheduler/Scheduler.ts"
import * as EmptyRow from "../sequence/EmptyRow.ts"
import { EndedSequences } from "../sequence/EndedSequences.ts"
import { SequenceQueue } from "../sequence/SequenceQueue.ts"
import { Agenda } from "./Agenda.ts"
import type { SequenceArrival } from "./SequenceTraffic.ts"
import { SimulatedInstance } from "./SimulatedInstance.ts"
import { type Latency, latencyOf, requireInteger } from "./SimulatedNumber.ts"
import * as VirtualTime from "./VirtualTime.ts"

/**
 * How sequences have slots, as `sequence_batching` in a repository: `direct` (a slot is a row of the batches of one
 * instance), or `oldest` (requests of the sequences of one instance form dynamic batches).
 */
export interface SequencePolicy {
  readonly strategy: "direct" | "oldest"
  /** Slots of each instance. Default of `direct`: the maximum batch size. */
  readonly slots: number
  /** Number of instances. Default 1. */
  readonly instances?: number
  /** Only for `direct`: time that a request waits for others, where `minSlotUtilization` is not reached. Default 0. */
  readonly maxQueueDelay?: Duration.Input
  /** Only for `direct`: part of the slots that starts a batch at once, from 0 to 1. Default 0. */
  readonly minSlotUtilization?: number
}

/** Traffic, the cost of a batch, and the policies to compare. */
export interface SequenceSimulationOptions {
  /** Comes to an end, and is gone through once for each policy. */
  readonly traffic: Iterable<SequenceArrival>
  /** Duration of a batch with this number of rows, empty rows included. A number is in milliseconds. */
  readonly cost: (rows: number) => Duration.Input
  readonly policies: ReadonlyArray<SequencePolicy>
  /** Time without requests at which a sequence expires. Default 1 second. */
  readonly maxIdle?: Duration.Input
  /** Maximum sequences that wait for a slot. Default 100,000. */
  readonly maxBacklog?: number
}

/** Batches, waiting times and lost requests of a simulation. */
export interface SequenceOutcome {
  readonly policy: SequencePolicy
  readonly sequences: number
  /** Sequences whose last request was answered. */
  readonly completed: number
  /** Sequences that found the backlog or the queue full. */
  readonly refused: number
  /** Sequences that expired while their caller waited to send the next request. */
  readonly expired: number
  /** Milliseconds from each answered request to its response; of first requests, the wait for a slot is part of it. */
  readonly latency: Latency
  /** The same, of first requests only. */
  readonly startLatency: Latency
  readonly batches: number
  /** Number of batches by their number of requests, empty rows excluded. */
  readonly batchSizes: ReadonlyMap<number, number>
  /** Mean requests per batch; NaN without batches. */
  readonly meanRequests: number
  /** Mean empty rows per batch; NaN without batches. */
  readonly meanEmptyRows: number
  /** Sequences that waited for a slot: the most, and the mean over time. */
  readonly backlog: { readonly max: number; readonly mean: number }
  /** The part of the time in which the instances worked, from 0 to 1. */
  readonly busy: number
  /** Milliseconds from the beginning to the last answer. */
  readonly took: number
}

type SimulatedModel = { readonly definition: Pick<Definition<Fields, Fields>, "name" | "maxBatchSize" | "batching"> }

/**
 * An outcome for each policy, in their order. Blocks the thread until it is done.
 * @throws RangeError if traffic runs backwards, or a number is out of range
 */
export const runSequences = (
  model: SimulatedModel,
  options: SequenceSimulationOptions,
): ReadonlyArray<SequenceOutcome> => options.policies.map((policy) => simulate(model, options, policy))

const simulate = (
  model: SimulatedModel,
  options: SequenceSimulationOptions,
  policy: SequencePolicy,
): SequenceOutcome => {
  const agenda = new Agenda()
  const tally = new Tally(agenda)
  const { instances: count = 1 } = policy
  requireInteger("instances", count, 1)
  requireInteger("slots", policy.slots, 1)
  const onBatch = (batch: Batch.Batch) => tally.batch(batch)
  const instances = Array.from(
    { length: count },
    (_, index) => new SimulatedInstance(index, agenda, options.cost, onBatch),
  )
  const scope = Scope.makeUnsafe()
  const make = schedulerOf(model, sequencingOf(policy, options), instances, (queue) => tally.watch(queue))
  const { submit } = Effect.runSync(Effect.provideContext(Scope.provide(make, scope), VirtualTime.context(agenda)))
  const send = (id: bigint, index: number, arrival: SequenceArrival): void => {
    const { requests, thinkTime = 0 } = arrival
    const maxIdle = arrival.maxIdle === undefined ? undefined : IdleLimit.parameter(arrival.maxIdle)
    const from = agenda.now
    const isLast = index === requests - 1
    submit(requestOf(id, { isStart: index === 0, isEnd: isLast, maxIdle }), (outcome) => {
      tally.answered({ nanos: agenda.now - from, isFirst: index === 0, isLast, outcome })
      if (Result.isFailure(outcome) || isLast) return
      const think = Duration.toMillis(Duration.fromInputUnsafe(thinkTime)) * 1e6
      agenda.after(think, () => send(id, index + 1, arrival))
    })
    tally.sample()
  }
  for (const arrival of options.traffic) {
    const at = arrival.at * 1e6
    if (!(at >= agenda.now))
      throw new RangeError(`A sequence begins at ${arrival.at} ms, after one at ${agenda.now / 1e6}.`)
    requireInteger("requests", arrival.requests, 1)
    agenda.runUntil(at)
    tally.sequences += 1
    send(BigInt(tally.sequences), 0, arrival)
  }
  agenda.run()
  Effect.runSync(Scope.close(scope, Exit.void))
  return tally.outcome(policy, instances)
}

const sequencingOf = (
  { strategy, slots, maxQueueDelay = 0, minSlotUtilization = 0 }: SequencePolicy,
  { maxIdle = "1 second", maxBacklog = sequenceDefaults.maxBacklog }: SequenceSimulationOptions,
): Sequencing => ({
  ...sequenceDefaults,
  strategy:
    strategy === "direct"
      ? { _tag: "direct", slots, maxQueueDelay: nanosOf(maxQueueDelay), minSlotUtilization }
      : { _tag: "oldest", slots },
  maxIdle: nanosOf(maxIdle),
  maxIdleLimit: Infinity,
  maxBacklog,
  isIterative: false,
  controls: [],
  states: [],
})

const nanosOf = (duration: Duration.Input): number => Duration.toMillis(Duration.fromInputUnsafe(duration)) * 1e6

const schedulerOf = (
  { definition: { name, maxBatchSize, batching } }: SimulatedModel,
  sequencing: Sequencing,
  instances: ReadonlyArray<SimulatedInstance>,
  onQueue: (queue: SequenceQueue) => void,
) => {
  const groupKey = () => ""
  const { maxQueueSize, queueing, groupOrder } = batching
  const rows = Math.max(1, maxBatchSize)
  return Scheduler.make({
    model: name,
    instances,
    statistics: new ModelStatistics(),
    groupKey,
    bisects: false,
    batchOf: Batch.make,
    maxBatchSize: rows,
    preferredBatchSizes: batching.preferredBatchSizes.filter((size) => size <= rows),
    maxQueueDelay: nanosOf(batching.maxQueueDelay),
    maxQueueSize,
    groupOrder,
    queueing,
    makeQueue: (hooks) => {
      const queue = new SequenceQueue({
        model: name,
        sequencing,
        instances: hooks.instances,
        ended: new EndedSequences(1),
        maxQueueSize,
        batches: maxBatchSize > 0,
        groupKey,
        emptyRow: EmptyRow.make,
        makeQueue: hooks.makeDefault,
        refuse: hooks.refuse,
        warn: hooks.warn,
      })
      onQueue(queue)
      return queue
    },
  })
}

const requestOf = (id: bigint, position: SessionParameters.Position): Request => ({
  id: "",
  inputs: [],
  rows: 1,
  parameters: SessionParameters.positioned(noParameters, id, position),
  deadline: undefined,
})

interface Answer {
  readonly nanos: number
  readonly isFirst: boolean
  readonly isLast: boolean
  readonly outcome: Result.Result<unknown, InferenceError>
}

/** Counts requests, batches and the backlog. */
class Tally {
  sequences = 0
  readonly #agenda: Agenda
  #queue: SequenceQueue | undefined
  #completed = 0
  #refused = 0
  #expired = 0
  #end = 0
  readonly #latencies: Array<number> = []
  readonly #startLatencies: Array<number> = []
  readonly #sizes = new Map<number, number>()
  #requests = 0
  #backlog = 0
  #maxBacklog = 0
  /** Sequences times nanoseconds. */
  #backlogTime = 0
  #sampledAt = 0

  constructor(agenda: Agenda) {
    this.#agenda = agenda
  }

  watch(queue: SequenceQueue): void {
    this.#queue = queue
  }

  /** Notes the backlog from now on. */
  sample(): void {
    const { now } = this.#agenda
    this.#backlogTime += this.#backlog * (now - this.#sampledAt)
    this.#sampledAt = now
    this.#backlog = this.#queue?.counts(now).backlog ?? 0
    this.#maxBacklog = Math.max(this.#maxBacklog, this.#backlog)
  }

  batch({ requests }: Batch.Batch): void {
    const size = requests.filter(({ sequence }) => sequence?.isReady === true).length
    this.#requests += size
    this.#sizes.set(size, (this.#sizes.get(size) ?? 0) + 1)
    this.sample()
  }

  answered({ nanos, isFirst, isLast, outcome }: Answer): void {
    this.#end = this.#agenda.now
    this.sample()
    if (Result.isSuccess(outcome)) {
      this.#latencies.push(nanos / 1e6)
      if (isFirst) this.#startLatencies.push(nanos / 1e6)
      if (isLast) this.#completed += 1
      return
    }
    const { _tag, message } = outcome.failure
    if (_tag === "QueueFull" || _tag === "QueueTimeout") this.#refused += 1
    else if (_tag === "SequenceNotFound") this.#expired += 1
    else throw new Error(`A simulated request failed: ${message} This is a bug.`)
  }

  outcome(policy: SequencePolicy, instances: ReadonlyArray<SimulatedInstance>): SequenceOutcome {
    const sum = (count: (instance: SimulatedInstance) => number) =>
      instances.reduce((total, instance) => total + count(instance), 0)
    const batches = sum((instance) => instance.batches)
    const rows = sum((instance) => instance.rows)
    const end = this.#end
    return {
      policy,
      sequences: this.sequences,
      completed: this.#completed,
      refused: this.#refused,
      expired: this.#expired,
      latency: latencyOf(this.#latencies),
      startLatency: latencyOf(this.#startLatencies),
      batches,
      batchSizes: new Map([...this.#sizes].toSorted(([one], [other]) => one - other)),
      meanRequests: this.#requests / batches,
      meanEmptyRows: (rows - this.#requests) / batches,
      backlog: { max: this.#maxBacklog, mean: end === 0 ? 0 : this.#backlogTime / end },
      busy: end === 0 ? 0 : sum(({ worked }) => worked) / (end * instances.length),
      took: end / 1e6,
    }
  }
}
