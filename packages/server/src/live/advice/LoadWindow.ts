/** The last steps of the live view as one: sums and averages of the process and of each model that was active. */
import * as LatencyHistogram from "@nereid/dashboard/internal/live/LatencyHistogram"
import type { LiveModel, RunningDetails } from "@nereid/dashboard/internal/live/LiveModel"
import type { FailureReason, LiveStep, ModelStep, QueueRefusal } from "@nereid/dashboard/internal/live/LiveStep"

export interface LoadWindow {
  /** Number of steps. */
  readonly steps: number
  readonly models: ReadonlyArray<ModelWindow>
  /** Longest delay of the event loop, in milliseconds. */
  readonly delayMax: number
  /** Steps in which the event loop was later than `lateMillis`. */
  readonly lateSteps: number
  /** Largest memory that callers held at the end of a step, in bytes, and its limit. */
  readonly heldMax: number
  readonly heldLimit: number
}

/** A delay of the event loop that callers notice, in milliseconds. */
export const lateMillis = 100

export interface ModelWindow extends RunningDetails {
  readonly name: string
  readonly version: string
  /** Requests that succeeded. */
  readonly requests: number
  readonly errors: { readonly [R in FailureReason]: number }
  readonly refusals: { readonly [R in QueueRefusal]: number }
  readonly hits: number
  readonly misses: number
  readonly executions: number
  /** Rows, and requests that were executed, per execution; 0 without executions. */
  readonly meanRows: number
  readonly meanRequests: number
  /** Requests in the queue, at the ends of the steps. */
  readonly meanQueue: number
  /** Busy instances: on average, and in the busiest step. */
  readonly meanBusy: number
  readonly peakBusy: number
  /** Milliseconds of a request on average: in the queue, moving tensors in and out, and in the execution. */
  readonly queueMillis: number
  readonly copyMillis: number
  readonly computeMillis: number
  /** The largest mean execution of a step in which the event loop was late, in milliseconds; 0 without such steps. */
  readonly lateComputeMillis: number
  /** 99th percentile of the latency, in milliseconds; 0 without requests. */
  readonly p99: number
}

export interface WindowSource {
  readonly steps: ReadonlyArray<LiveStep>
  readonly models: ReadonlyArray<LiveModel>
  readonly heldLimit: number
}

export const make = ({ steps, models, heldLimit }: WindowSource): LoadWindow => {
  const byModel = new Map<string, Array<WeightedStep>>()
  let weight = 0
  for (const step of steps) {
    // A step of less than a millisecond counts too.
    const millis = Math.max(1, step.millis)
    weight += millis
    for (const model of step.models) {
      const found = byModel.get(keyOf(model))
      const weighted = { model, millis, isLate: isLate(step) }
      if (found === undefined) byModel.set(keyOf(model), [weighted])
      else found.push(weighted)
    }
  }
  return {
    steps: steps.length,
    models: models.flatMap(({ running, ...model }) => {
      const active = byModel.get(keyOf(model))
      return running === undefined || active === undefined
        ? []
        : [{ ...running, ...modelWindow(active, steps.length, weight), name: model.name, version: model.version }]
    }),
    delayMax: Math.max(0, ...steps.map(({ process }) => process.delayMax)),
    lateSteps: steps.filter(isLate).length,
    heldMax: Math.max(0, ...steps.map(({ process }) => process.held)),
    heldLimit,
  }
}

const isLate = ({ process }: LiveStep): boolean => process.delayMax >= lateMillis

interface WeightedStep {
  readonly model: ModelStep
  readonly millis: number
  /** Whether the event loop was late in the step. */
  readonly isLate: boolean
}

const keyOf = ({ name, version }: { readonly name: string; readonly version: string }): string => `${name}/${version}`

type Measured = Omit<ModelWindow, "name" | "version" | keyof RunningDetails>

const modelWindow = (active: ReadonlyArray<WeightedStep>, steps: number, weight: number): Measured => {
  const sum = (value: (model: ModelStep) => number | undefined) =>
    active.reduce((total, { model }) => total + (value(model) ?? 0), 0)
  let executions = 0
  let rows = 0
  for (const { model } of active) {
    const { batches = [] } = model
    for (let at = 0; at + 1 < batches.length; at += 2) {
      executions += batches[at + 1] ?? 0
      rows += (batches[at] ?? 0) * (batches[at + 1] ?? 0)
    }
  }
  const requests = sum((model) => model.requests)
  const hits = sum((model) => model.hits)
  const mean = (part: number) => (requests === 0 ? 0 : part / requests / 1000)
  const latency = LatencyHistogram.merge(active.flatMap(({ model }) => (model.latency ? [model.latency] : [])))
  return {
    requests,
    errors: {
      REJECTED: sum((model) => model.errors?.REJECTED),
      CANCELED: sum((model) => model.errors?.CANCELED),
      BACKEND: sum((model) => model.errors?.BACKEND),
      OTHER: sum((model) => model.errors?.OTHER),
    },
    refusals: {
      full: sum((model) => model.refusals?.full),
      timeout: sum((model) => model.refusals?.timeout),
      deadline: sum((model) => model.refusals?.deadline),
    },
    hits,
    misses: sum((model) => model.misses),
    executions,
    meanRows: executions === 0 ? 0 : rows / executions,
    meanRequests: executions === 0 ? 0 : (requests - hits) / executions,
    meanQueue: sum((model) => model.queue) / steps,
    meanBusy: active.reduce((total, { model, millis }) => total + (model.busy ?? 0) * millis, 0) / weight,
    peakBusy: Math.max(...active.map(({ model }) => model.busy ?? 0)),
    queueMillis: mean(sum(({ parts }) => parts?.[0])),
    copyMillis: mean(sum(({ parts }) => (parts?.[1] ?? 0) + (parts?.[3] ?? 0))),
    computeMillis: mean(sum(({ parts }) => parts?.[2])),
    lateComputeMillis: Math.max(
      0,
      ...active.flatMap(({ isLate, model: { parts, requests = 0 } }) =>
        isLate && parts !== undefined && requests > 0 ? [parts[2] / requests / 1000] : [],
      ),
    ),
    p99: (LatencyHistogram.quantileOf(latency, 0.99) ?? 0) / 1000,
  }
}
