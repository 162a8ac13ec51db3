/** Numbers of the charts, made of the steps of the live stream. */
import * as LatencyHistogram from "../../src/live/LatencyHistogram.ts"
import type { LiveStep, ModelStep } from "../../src/live/LiveStep.ts"

/** The steps of the last seconds. */
export const window = (steps: ReadonlyArray<LiveStep>, seconds: number): ReadonlyArray<LiveStep> => {
  const end = steps.at(-1)?.time ?? 0
  return steps.filter(({ time }) => time > end - seconds * 1000)
}

/** A version of a model; undefined for all models. */
export interface Subject {
  readonly name: string
  readonly version: string
}

/** The step of the models, or of one of them. */
export const modelSteps = ({ models }: LiveStep, subject: Subject | undefined): ReadonlyArray<ModelStep> =>
  subject === undefined
    ? models
    : models.filter(({ name, version }) => name === subject.name && version === subject.version)

const sum = <A>(values: ReadonlyArray<A>, of: (value: A) => number): number =>
  values.reduce((total, value) => total + of(value), 0)

export const failuresOf = ({ errors = {} }: ModelStep): number => sum(Object.values(errors), (count) => count)

/** A row of numbers for each line of a chart; null where there is none. */
export type Rows = ReadonlyArray<ReadonlyArray<number | null>>

/** Seconds since the epoch. */
export const times = (steps: ReadonlyArray<LiveStep>): ReadonlyArray<number> => steps.map(({ time }) => time / 1000)

/** Requests that succeeded, and those that failed, per second. */
export const rates = (steps: ReadonlyArray<LiveStep>, subject: Subject | undefined): Rows => {
  const perSecond = (of: (step: ModelStep) => number) =>
    steps.map((step) => (sum(modelSteps(step, subject), of) / step.millis) * 1000)
  return [perSecond(({ requests = 0 }) => requests), perSecond(failuresOf)]
}

/** p50, p95 and p99 in milliseconds. */
export const latencies = (steps: ReadonlyArray<LiveStep>, subject: Subject | undefined): Rows => {
  const merged = steps.map((step) =>
    LatencyHistogram.merge(
      modelSteps(step, subject).flatMap(({ latency }) => (latency === undefined ? [] : [latency])),
    ),
  )
  return quantiles.map((quantile) =>
    merged.map((histogram) => millis(LatencyHistogram.quantileOf(histogram, quantile))),
  )
}

export const quantiles = [0.5, 0.95, 0.99] as const

const millis = (micros: number | undefined): number | null => (micros === undefined ? null : micros / 1000)

/** Requests in the queue, and milliseconds that the oldest has waited. */
export const queues = (steps: ReadonlyArray<LiveStep>, subject: Subject | undefined): Rows => [
  steps.map((step) => sum(modelSteps(step, subject), ({ queue = 0 }) => queue)),
  steps.map((step) => Math.max(0, ...modelSteps(step, subject).map(({ oldest = 0 }) => oldest))),
]

/** Busy instances. */
export const busy = (steps: ReadonlyArray<LiveStep>, subject: Subject | undefined): Rows => [
  steps.map((step) => sum(modelSteps(step, subject), ({ busy: instances = 0 }) => instances)),
]

/** Sums over a window. */
export interface Totals {
  readonly requests: number
  readonly failures: number
  /** By reason, and by what the queue refused. */
  readonly reasons: ReadonlyMap<string, number>
  readonly perSecond: number
  readonly rows: number
  readonly executions: number
  /** Milliseconds; undefined without requests. */
  readonly quantiles: readonly [number | undefined, number | undefined, number | undefined]
  /** Mean microseconds of a request in queue, input, compute and output. */
  readonly parts: readonly [number, number, number, number]
  /** Executions by rows, the smallest first. */
  readonly batches: ReadonlyArray<readonly [rows: number, executions: number]>
  readonly hits: number
  readonly misses: number
  readonly sequences: number
}

export const totals = (steps: ReadonlyArray<LiveStep>, subject: Subject | undefined): Totals => {
  const parts = steps.flatMap((step) => modelSteps(step, subject))
  const seconds = sum(steps, ({ millis: length }) => length) / 1000
  const requests = sum(parts, (part) => part.requests ?? 0)
  const latency = LatencyHistogram.merge(parts.flatMap((part) => (part.latency === undefined ? [] : [part.latency])))
  const quantile = (share: number) => millis(LatencyHistogram.quantileOf(latency, share)) ?? undefined
  const timed = LatencyHistogram.countOf(latency)
  const mean = (place: 0 | 1 | 2 | 3) => (timed === 0 ? 0 : sum(parts, (part) => part.parts?.[place] ?? 0) / timed)
  const batches = counted(parts)
  return {
    requests,
    failures: sum(parts, failuresOf),
    reasons: reasonsOf(parts),
    perSecond: seconds === 0 ? 0 : requests / seconds,
    rows: sum(parts, (part) => part.rows ?? 0),
    executions: sum(batches, ([, executions]) => executions),
    quantiles: [quantile(0.5), quantile(0.95), quantile(0.99)],
    parts: [mean(0), mean(1), mean(2), mean(3)],
    batches,
    hits: sum(parts, (part) => part.hits ?? 0),
    misses: sum(parts, (part) => part.misses ?? 0),
    sequences: sum(modelStepsOfLast(steps, subject), (part) => part.sequences ?? 0),
  }
}

const modelStepsOfLast = (steps: ReadonlyArray<LiveStep>, subject: Subject | undefined): ReadonlyArray<ModelStep> => {
  const last = steps.at(-1)
  return last === undefined ? [] : modelSteps(last, subject)
}

const counted = (parts: ReadonlyArray<ModelStep>): Totals["batches"] => {
  const counts = new Map<number, number>()
  for (const { batches = [] } of parts) {
    for (let at = 0; at + 1 < batches.length; at += 2) {
      const rows = batches[at] ?? 0
      counts.set(rows, (counts.get(rows) ?? 0) + (batches[at + 1] ?? 0))
    }
  }
  return [...counts].toSorted(([a], [b]) => a - b)
}

const reasonsOf = (parts: ReadonlyArray<ModelStep>): Totals["reasons"] => {
  const reasons = new Map<string, number>()
  const add = (name: string, count: number) => reasons.set(name, (reasons.get(name) ?? 0) + count)
  for (const { errors = {}, refusals = {} } of parts) {
    for (const [reason, count] of Object.entries(errors)) add(reason, count)
    for (const [refusal, count] of Object.entries(refusals)) add(`queue: ${refusal}`, count)
  }
  return reasons
}

/** Models with anything in the steps, the busiest first. */
export const activeModels = (steps: ReadonlyArray<LiveStep>): ReadonlyArray<Subject> => {
  const found = new Map<string, Subject & { count: number }>()
  for (const { models } of steps) {
    for (const { name, version, requests = 0 } of models) {
      const key = `${name}\n${version}`
      const subject = found.get(key) ?? { name, version, count: 0 }
      subject.count += requests
      found.set(key, subject)
    }
  }
  return [...found.values()].toSorted((a, b) => b.count - a.count)
}
