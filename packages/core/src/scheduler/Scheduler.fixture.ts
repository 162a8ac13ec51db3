/** A scheduler whose instances record their batches and block until the test releases them. Uses the test clock. */
import { Deferred, Effect, Exit, identity, Result } from "effect"
import { TestClock } from "effect/testing"
import * as Batch from "../batch/Batch.ts"
import type { InferenceError } from "../error/InferenceError.ts"
import { noParameters, type Request } from "../request/Request.ts"
import { fromEffect, type Instance, type InstanceStatus } from "../instance/Instance.ts"
import { infer } from "../running/CallableModel.ts"
import * as Scheduler from "./Scheduler.ts"
import { ModelStatistics } from "../metrics/ModelStatistics.ts"
import type { Permit } from "../limiter/Permit.ts"
import { make as tensor } from "../tensor/TypedTensor.ts"

/** A request with this number of rows; the response repeats its values. */
export const request = (rows: number, overrides: Partial<Request> = {}): Request => ({
  id: "",
  inputs: [tensor("INT32", [rows], new Int32Array(rows).fill(rows))],
  rows,
  parameters: noParameters,
  deadline: undefined,
  ...overrides,
})

interface Run {
  readonly batch: Batch.Batch
  readonly instance: string
  readonly gate: Deferred.Deferred<void, InferenceError>
}

export type HarnessOptions = Partial<Scheduler.SchedulerOptions> & {
  instanceCount?: number
  concurrency?: number
  interruptible?: boolean
  interruptTimeout?: number
  permit?: (index: number) => Permit | undefined
  wrap?: (execute: Instance["execute"]) => Instance["execute"]
}

/** Instances that record their batches and wait for `complete`. */
export const harness = Effect.fnUntraced(function* (options: HarnessOptions = {}) {
  const runs: Array<Run> = []
  const context = yield* Effect.context<never>()
  const statistics = new ModelStatistics()
  const statuses = new Map<string, InstanceStatus>()
  const executeGated = (index: number) =>
    fromEffect(
      context,
      Effect.fnUntraced(function* (batch) {
        const gate = yield* Deferred.make<void, InferenceError>()
        runs.push({ batch, instance: `m_0_${index}`, gate })
        yield* Deferred.await(gate)
        const [outputs] = Batch.inputs(batch)
        const outcomes = Batch.split(batch, outputs === undefined ? [] : [outputs]).map(Result.succeed)
        return { outcomes, inputDuration: 0, outputDuration: 0 }
      }),
    )
  const instance = (index: number): Instance => ({
    name: `m_0_${index}`,
    concurrency: options.concurrency ?? 1,
    status: () => statuses.get(`m_0_${index}`) ?? "available",
    onStatusChange: () => {},
    permit: options.permit?.(index),
    ...(options.interruptTimeout === undefined ? {} : { interruptTimeout: options.interruptTimeout }),
    execute: (options.wrap ?? identity)((batch, settle) => {
      const interrupt = executeGated(index)(batch, settle)
      return options.interruptible === false ? () => {} : interrupt
    }),
  })
  const instances = Array.from({ length: options.instanceCount ?? 1 }, (_, index) => instance(index))
  const scheduler = yield* Scheduler.make({
    model: "m",
    instances,
    statistics,
    groupKey: () => "",
    batchOf: Batch.make,
    bisects: false,
    maxBatchSize: 4,
    preferredBatchSizes: [],
    maxQueueDelay: 0,
    maxQueueSize: 100,
    groupOrder: "independent",
    ...options,
  })
  const model = { decoupled: false, emits: false, submit: scheduler.submit }
  /** Sends a request on a separate fiber. */
  const send = (rows: number, overrides?: Partial<Request>) =>
    Effect.forkChild(infer(model, request(rows, overrides)), { startImmediately: true })
  /** Lets every other fiber go as far as it can. */
  const settle = TestClock.adjust(0)
  const sizes = () => runs.map(({ batch }) => batch.requests.map(({ rows }) => rows).join("+"))
  /** Ends run `index`, and gives the dispatcher its turn. */
  const complete = (index: number, exit: Exit.Exit<void, InferenceError> = Exit.void) =>
    Effect.gen(function* () {
      const gate = runs[index]?.gate
      if (gate === undefined) throw new Error(`There is no run ${index}: ${sizes().join(",")}`)
      yield* Deferred.done(gate, exit)
      yield* settle
    })
  const setStatus = (name: string, status: InstanceStatus) => {
    statuses.set(name, status)
    for (const each of instances) each.onStatusChange()
  }
  return { scheduler, instances, runs, statistics, send, settle, sizes, complete, setStatus }
})
