/** Makes the steps of the live view, from all models that requests reach and from the process. It has no timer. */
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import type { LiveStep, ModelStep } from "@nereid/dashboard/internal/live/LiveStep"
import type { Gateway } from "../gateway/Gateway.ts"
import { ModelSampler } from "./ModelSampler.ts"
import { ProcessSampler } from "./ProcessSampler.ts"
import type { SlowRequests } from "./SlowRequests.ts"

export type Sampled = Pick<Gateway, "models" | "connections" | "memory" | "inFlight">

export interface SamplerClock {
  /** Milliseconds since the epoch. */
  readonly epoch: () => number
  /** Milliseconds of the monotonic clock. */
  readonly monotonic: () => number
}

export const systemClock: SamplerClock = { epoch: () => Date.now(), monotonic: () => performance.now() }

export class StepSampler {
  readonly #sampled: Sampled
  readonly #slow: SlowRequests
  readonly #clock: SamplerClock
  readonly #process = new ProcessSampler()
  readonly #models = new Map<RunningModel, ModelSampler>()
  /** Models that have left since the last step, to be read once more. */
  readonly #leaving = new Map<RunningModel, ModelSampler>()
  readonly #unwatch: () => void
  #index = 0
  #endedAt: number

  constructor(sampled: Sampled, slow: SlowRequests, clock: SamplerClock = systemClock) {
    this.#sampled = sampled
    this.#slow = slow
    this.#clock = clock
    this.#endedAt = clock.monotonic()
    this.#unwatch = sampled.models.onChange(() => this.#follow())
    this.#follow()
  }

  /** Ends a step, and begins the next one. */
  step(): LiveStep {
    const endedAt = this.#clock.monotonic()
    const nanos = Math.max(1, (endedAt - this.#endedAt) * 1e6)
    this.#endedAt = endedAt
    this.#index += 1
    const models: Array<ModelStep> = []
    for (const sampler of this.#models.values()) {
      const step = sampler.read(nanos)
      if (step !== undefined) models.push(step)
    }
    this.#readLeaving(nanos, models)
    const { connections, memory, inFlight } = this.#sampled
    return {
      index: this.#index,
      time: this.#clock.epoch(),
      millis: Math.round(nanos / 1e6),
      process: {
        ...this.#process.read(nanos),
        connections: connections.count,
        inFlight: inFlight(),
        held: memory.used,
      },
      models,
    }
  }

  close(): void {
    this.#unwatch()
    this.#process.close()
    for (const sampler of [...this.#models.values(), ...this.#leaving.values()]) sampler.close()
    this.#models.clear()
    this.#leaving.clear()
  }

  #follow(): void {
    const current = new Set(this.#sampled.models.models)
    for (const [model, sampler] of this.#models) {
      if (current.has(model)) continue
      this.#models.delete(model)
      this.#leaving.set(model, sampler)
    }
    for (const model of current) {
      if (!this.#models.has(model)) this.#models.set(model, this.#returning(model))
    }
  }

  #returning(model: RunningModel): ModelSampler {
    const known = this.#leaving.get(model)
    this.#leaving.delete(model)
    return known ?? new ModelSampler(model, this.#slow)
  }

  /** Adds the models that have left, unless their successors are there. */
  #readLeaving(nanos: number, models: Array<ModelStep>): void {
    for (const [model, sampler] of this.#leaving) {
      const { name, version } = model.description
      const step = sampler.read(nanos)
      sampler.close()
      const isReplaced = models.some((other) => other.name === name && other.version === version)
      if (step !== undefined && !isReplaced) models.push(step)
    }
    this.#leaving.clear()
  }
}
