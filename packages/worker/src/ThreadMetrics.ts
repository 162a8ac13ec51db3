/**
 * Metrics of one thread on the main thread, for /metrics. They are removed when the thread ends. ForwardedMetrics.ts
 * sends them.
 */
import type { BuiltInstance } from "@nereid/core/InstanceContext"
import { declare, type FamilySeries } from "@nereid/core/internal/metrics/MetricSink"
import type { Metric } from "effect"
import type { FromThread } from "./ThreadProtocol.ts"

export type MetricMessage = Extract<FromThread, { _tag: "Metric" | "Measured" }>

export class ThreadMetrics {
  readonly #instance: BuiltInstance
  readonly #registry: Metric.MetricRegistry
  readonly #families = new Map<number, FamilySeries>()

  constructor(instance: BuiltInstance, registry: Metric.MetricRegistry) {
    this.#instance = instance
    this.#registry = registry
  }

  /**
   * Applies a message of the thread.
   * @throws TypeError if the name belongs to another metric
   */
  receive(message: MetricMessage): void {
    if (message._tag === "Metric") {
      this.#families.set(message.metric, declare(message.spec, this.#instance, this.#registry))
      return
    }
    for (const { metric, labels, value } of message.updates) this.#families.get(metric)?.update(labels, value)
  }

  release(): void {
    for (const { release } of this.#families.values()) release()
    this.#families.clear()
  }
}
