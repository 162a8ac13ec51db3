/**
 * Reads one version of a model once per step: the differences of its counters, the latencies of its requests, its queue
 * and its instances. A request costs one count in an array; everything else is read from counters that exist anyway.
 */
import type { BatchStatistics, FailureReason, Observer } from "@nereid/core/internal/metrics/ModelStatistics"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import * as LatencyHistogram from "@nereid/dashboard/internal/live/LatencyHistogram"
import type { ModelStep, QueueRefusal } from "@nereid/dashboard/internal/live/LiveStep"
import type { SlowRequests } from "./SlowRequests.ts"

const reasons: ReadonlyArray<FailureReason> = ["REJECTED", "CANCELED", "BACKEND", "OTHER"]
const refusals: ReadonlyArray<QueueRefusal> = ["full", "timeout", "deadline"]

export class ModelSampler {
  readonly #model: RunningModel
  readonly #observer: Observer
  readonly #latencies = new Uint32Array(LatencyHistogram.bucketCount)
  #counts: Counts
  #batches: ReadonlyMap<number, number>
  #busyNanos: number

  constructor(model: RunningModel, slow: SlowRequests) {
    const { name, version, statistics } = model.description
    this.#model = model
    this.#counts = countsOf(model)
    this.#batches = executionsOf(statistics.batches)
    this.#busyNanos = model.life.activity().busyNanos
    const latencies = this.#latencies
    const observe = (total: number) => {
      const bucket = LatencyHistogram.bucketOf(total / 1000)
      latencies[bucket] = (latencies[bucket] ?? 0) + 1
    }
    this.#observer = {
      succeeded: (total, queued, compute, id) => {
        observe(total)
        if (total > slow.threshold) slow.succeeded({ name, version, id, total, queued, compute })
      },
      failed: (reason, total, id) => {
        if (total > slow.threshold) slow.failed({ name, version, id, total, reason })
      },
      hit: observe,
    }
    statistics.observers.add(this.#observer)
  }

  /** Returns the step since the last call; undefined for one without activity. `nanos` is the length of the step. */
  read(nanos: number): ModelStep | undefined {
    const { description, life } = this.#model
    const counts = countsOf(this.#model)
    const { busyNanos, oldestNanos, sequences } = life.activity()
    const queue = life.pending()
    const before = this.#counts
    const busy = busyNanos - this.#busyNanos
    const live = sequences?.live ?? 0
    if (queue + busy + live === 0 && counts.every((count, index) => count === before[index])) return undefined
    this.#counts = counts
    this.#busyNanos = busyNanos
    const since = (count: number) => (counts[count] ?? 0) - (before[count] ?? 0)
    const micros = (count: number) => Math.max(0, Math.round(since(count) / 1000))
    const step: Writable<ModelStep> = { name: description.name, version: description.version }
    const { errors, refused } = this.#failures(since)
    const parts = [micros(Count.queue), micros(Count.input), micros(Count.compute), micros(Count.output)] as const
    // Numbers that are 0 are left out: most models are idle in most steps.
    if (since(Count.success) > 0) {
      step.requests = since(Count.success)
      step.latency = this.#takeLatencies()
    }
    if (errors !== undefined) step.errors = errors
    if (refused !== undefined) step.refusals = refused
    if (since(Count.rows) > 0) step.rows = since(Count.rows)
    if (since(Count.executions) > 0) step.batches = this.#executions(description.statistics.batches)
    if (parts.some((part) => part > 0)) step.parts = parts
    if (queue > 0) step.queue = queue
    if (oldestNanos >= 5e5) step.oldest = Math.round(oldestNanos / 1e6)
    if (busy > 0) step.busy = Math.round((busy / nanos) * 1000) / 1000
    if (since(Count.hits) > 0) step.hits = since(Count.hits)
    if (since(Count.misses) > 0) step.misses = since(Count.misses)
    if (live > 0) step.sequences = live
    return step
  }

  close(): void {
    this.#model.description.statistics.observers.delete(this.#observer)
  }

  #failures(since: (count: number) => number): {
    readonly errors: ModelStep["errors"]
    readonly refused: ModelStep["refusals"]
  } {
    const errors: { [R in FailureReason]?: number } = {}
    const refused: { [R in QueueRefusal]?: number } = {}
    for (const reason of reasons) if (since(Count[reason]) > 0) errors[reason] = since(Count[reason])
    for (const refusal of refusals) if (since(Count[refusal]) > 0) refused[refusal] = since(Count[refusal])
    return {
      errors: Object.keys(errors).length > 0 ? errors : undefined,
      refused: Object.keys(refused).length > 0 ? refused : undefined,
    }
  }

  #takeLatencies(): LatencyHistogram.LatencyHistogram {
    const latencies = LatencyHistogram.sparse(this.#latencies)
    this.#latencies.fill(0)
    return latencies
  }

  #executions(batches: ReadonlyMap<number, BatchStatistics>): ReadonlyArray<number> {
    const executions = executionsOf(batches)
    const sizes = [...executions.keys()].toSorted((one, other) => one - other)
    const pairs = sizes.flatMap((rows) => {
      const count = (executions.get(rows) ?? 0) - (this.#batches.get(rows) ?? 0)
      return count > 0 ? [rows, count] : []
    })
    this.#batches = executions
    return pairs
  }
}

/** Places of the counters in `Counts`. */
const Count = {
  success: 0,
  REJECTED: 1,
  CANCELED: 2,
  BACKEND: 3,
  OTHER: 4,
  full: 5,
  timeout: 6,
  deadline: 7,
  rows: 8,
  executions: 9,
  queue: 10,
  input: 11,
  compute: 12,
  output: 13,
  hits: 14,
  misses: 15,
} as const

type Counts = ReadonlyArray<number>

const countsOf = ({ description: { statistics } }: RunningModel): Counts => {
  const { failures, queueRefusals } = statistics
  return [
    statistics.success.count,
    failures.REJECTED,
    failures.CANCELED,
    failures.BACKEND,
    failures.OTHER,
    queueRefusals.full + queueRefusals.predicted,
    queueRefusals.timeout,
    queueRefusals.deadline,
    statistics.inferenceCount,
    statistics.executionCount,
    statistics.queue.ns,
    statistics.computeInput.ns,
    statistics.computeInfer.ns,
    statistics.computeOutput.ns,
    statistics.cacheHit.count,
    statistics.cacheMiss.count,
  ]
}

const executionsOf = (batches: ReadonlyMap<number, BatchStatistics>): ReadonlyMap<number, number> => {
  const executions = new Map<number, number>()
  for (const [rows, { computeInfer }] of batches) executions.set(rows, computeInfer.count)
  return executions
}

type Writable<A> = { -readonly [K in keyof A]: A[K] }
