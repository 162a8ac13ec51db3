/** The gauges of Saturation.ts. */
import { type Clock, type Context, Effect, Metric, type Scope } from "effect"
import * as MonotonicTime from "@nereid/core/internal/request/MonotonicTime"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import type { MemoryBudget } from "../limit/MemoryBudget.ts"
import { ModelSaturation, ServerSaturation } from "./Saturation.ts"

const ofServer = Metric.gauge("nereid_saturation", {
  description: "Used share of the server's capacity, from 0 to 1: the largest of nereid_saturation_part",
})

const ofPart = (part: "models" | "main_thread" | "memory") =>
  Metric.gauge("nereid_saturation_part", {
    description:
      "Used share of capacity, by part: the most saturated model, time of the main thread, memory of requests in flight",
    attributes: { part },
  })

const parts = { models: ofPart("models"), mainThread: ofPart("main_thread"), memory: ofPart("memory") }

const description =
  "Used share of the model's capacity, from 0 to 1: queue time against its target, or time of its instances"

export class SaturationMetrics {
  readonly #clock: Clock.Clock
  readonly #queueTargetMillis: number
  readonly #registry: Context.Context<never>
  readonly #server: ServerSaturation
  readonly #models = new Map<ModelSaturation, Metric.Metric<number, unknown>>()

  constructor(
    clock: Clock.Clock,
    queueTargetMillis: number,
    memory: Pick<MemoryBudget, "used" | "limit">,
    registry: Context.Context<never>,
  ) {
    this.#clock = clock
    this.#queueTargetMillis = queueTargetMillis
    this.#registry = registry
    this.#server = new ServerSaturation(memory, MonotonicTime.millis(clock))
  }

  /** Adds a model, until the scope closes. */
  register(model: RunningModel, attributes: Readonly<Record<string, string>>): Effect.Effect<void, never, Scope.Scope> {
    const gauge = Metric.gauge("nereid_model_saturation", { description, attributes })
    return Effect.asVoid(
      Effect.acquireRelease(
        Effect.sync(() => {
          const saturation = new ModelSaturation(model, this.#queueTargetMillis, MonotonicTime.millis(this.#clock))
          this.#models.set(saturation, gauge)
          return saturation
        }),
        (saturation) =>
          Effect.sync(() => {
            this.#models.delete(saturation)
            Metric.removeUnsafe(gauge, this.#registry)
          }),
      ),
    )
  }

  /** Computes all values, for a scrape. */
  update(): void {
    const now = MonotonicTime.millis(this.#clock)
    const registry = this.#registry
    let models = 0
    for (const [saturation, gauge] of this.#models) {
      const value = saturation.value(now)
      gauge.updateUnsafe(value, registry)
      models = Math.max(models, value)
    }
    const mainThread = this.#server.mainThread(now)
    const memory = this.#server.memory()
    parts.models.updateUnsafe(models, registry)
    parts.mainThread.updateUnsafe(mainThread, registry)
    parts.memory.updateUnsafe(memory, registry)
    ofServer.updateUnsafe(Math.max(models, mainThread, memory), registry)
  }
}
