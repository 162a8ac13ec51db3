/**
 * How much of its capacity a model, or the server, uses: a number from 0 to 1 for autoscalers. It is computed at a
 * scrape, from counters that exist anyway; nothing is measured in between.
 *
 *   queue      time in the queue beyond `maxQueueDelay`, as a share of the target; 1 if a full queue refused requests
 *   instances  time that the rows would take in full batches, as a share of the time of all instances
 *   a model    the larger one of these
 *   the server its most saturated model, the main thread, or the memory of requests in flight
 */
import { performance } from "node:perf_hooks"
import { Duration } from "effect"
import type { BatchStatistics } from "@nereid/core/internal/metrics/ModelStatistics"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import type { MemoryBudget } from "../limit/MemoryBudget.ts"

/** Shortest time that a value is about, in milliseconds: several scrapers and a quick one see the same. */
export const windowMillis = 10_000

/** Least time between two samples, in milliseconds, which bounds their number. */
const intervalMillis = 1_000

/** Samples of counters at scrapes. A value is about the time since the newest sample that is older than the window. */
class SampleWindow<Sample> {
  readonly #samples: Array<{ readonly at: number; readonly sample: Sample }> = []

  /** Returns the sample to compare with, and its age. The first one, until a sample is older than the window. */
  add(at: number, sample: Sample): { readonly before: Sample; readonly millis: number } {
    const samples = this.#samples
    while ((samples[1]?.at ?? Infinity) <= at - windowMillis) samples.shift()
    if (at - (samples.at(-1)?.at ?? -Infinity) >= intervalMillis) samples.push({ at, sample })
    const [first = { at, sample }] = samples
    return { before: first.sample, millis: at - first.at }
  }
}

interface ModelSample {
  readonly busyNanos: number
  readonly batches: number
  readonly rows: number
  readonly queueNanos: number
  readonly queued: number
  readonly refused: number
}

export class ModelSaturation {
  readonly #model: RunningModel
  readonly #targetNanos: number
  readonly #delayNanos: number
  readonly #window = new SampleWindow<ModelSample>()

  /** `queueTargetMillis`: time in the queue at which the model is saturated. */
  constructor(model: RunningModel, queueTargetMillis: number, now: number) {
    const { maxQueueDelay } = model.description.batching
    this.#model = model
    this.#targetNanos = queueTargetMillis * 1e6
    this.#delayNanos = Duration.toMillis(maxQueueDelay) * 1e6
    this.#window.add(now, sampleOf(model))
  }

  /** Value at a monotonic time in milliseconds. */
  value(now: number): number {
    const sample = sampleOf(this.#model)
    const { before, millis } = this.#window.add(now, sample)
    return Math.max(this.#queue(sample, before), this.#instances(sample, before, millis))
  }

  #queue(sample: ModelSample, before: ModelSample): number {
    if (sample.refused > before.refused) return 1
    const mean = (sample.queueNanos - before.queueNanos) / Math.max(1, sample.queued - before.queued)
    const { oldestNanos } = this.#model.life.activity()
    return share(Math.max(mean, oldestNanos) - this.#delayNanos, this.#targetNanos)
  }

  #instances(sample: ModelSample, before: ModelSample, millis: number): number {
    const { instances } = this.#model.life.activity()
    const busy = share(sample.busyNanos - before.busyNanos, instances * millis * 1e6)
    const { maxBatchSize, statistics } = this.#model.description
    const rows = sample.rows - before.rows
    const batches = sample.batches - before.batches
    if (maxBatchSize <= 1 || rows <= 0 || batches <= 0) return busy
    const { ofBatch, ofRow } = costOf(statistics.batches)
    const now = batches * ofBatch + rows * ofRow
    const inFullBatches = (rows / maxBatchSize) * ofBatch + rows * ofRow
    return now > 0 ? busy * Math.min(1, inFullBatches / now) : busy
  }
}

/** Time of the main thread and of the models, and memory. */
export class ServerSaturation {
  readonly #memory: Pick<MemoryBudget, "used" | "limit">
  readonly #activeMillis: () => number
  readonly #window = new SampleWindow<number>()

  /** `activeMillis`: time in which the main thread has worked. Default: that of this process. */
  constructor(memory: Pick<MemoryBudget, "used" | "limit">, now: number, activeMillis = activeMillisOfThread) {
    this.#memory = memory
    this.#activeMillis = activeMillis
    this.#window.add(now, activeMillis())
  }

  /** Share of the time in which the main thread worked. */
  mainThread(now: number): number {
    const active = this.#activeMillis()
    const { before, millis } = this.#window.add(now, active)
    return share(active - before, millis)
  }

  /** Share of the memory for requests in flight and unsent responses that is used. */
  memory(): number {
    return share(this.#memory.used, this.#memory.limit)
  }
}

const activeMillisOfThread = (): number => performance.eventLoopUtilization().active

const sampleOf = ({ description: { statistics }, life }: RunningModel): ModelSample => ({
  busyNanos: life.activity().busyNanos,
  batches: statistics.executionCount,
  rows: statistics.inferenceCount - statistics.cachedCount,
  queueNanos: statistics.queue.ns,
  queued: statistics.success.count,
  refused: statistics.queueRefusals.full + statistics.queueRefusals.predicted,
})

/** The part of a whole, from 0 to 1; 0 for a whole without an extent. */
const share = (part: number, whole: number): number =>
  whole > 0 && whole !== Infinity ? Math.min(1, Math.max(0, part / whole)) : 0

/**
 * Cost of a batch, and of each of its rows: the straight line through the mean times of the batches of each size,
 * weighted by their number. With one size only, the rows cost everything.
 */
const costOf = (sizes: ReadonlyMap<number, BatchStatistics>): { readonly ofBatch: number; readonly ofRow: number } => {
  let [count, rows, nanos, squares, products] = [0, 0, 0, 0, 0]
  for (const [size, { computeInput, computeInfer, computeOutput }] of sizes) {
    const time = computeInput.ns + computeInfer.ns + computeOutput.ns
    count += computeInfer.count
    rows += size * computeInfer.count
    nanos += time
    squares += size * size * computeInfer.count
    products += size * time
  }
  if (count === 0) return { ofBatch: 0, ofRow: 0 }
  const spread = squares - (rows * rows) / count
  const slope = spread > 0 ? (products - (rows * nanos) / count) / spread : Infinity
  // Neither a batch nor a row costs less than nothing.
  const ofRow = Math.max(0, Math.min(slope, nanos / rows))
  return { ofBatch: (nanos - ofRow * rows) / count, ofRow }
}
