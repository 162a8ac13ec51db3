/** Metrics of Effect about attempts and replicas, in the registry of the program. */
import { type Context, Metric } from "effect"
import type { AttemptMetrics, AttemptOutcome, AttemptReason } from "./AttemptMetrics.ts"
import type { Replica } from "./Replica.ts"

const attempts = Metric.counter("nereid_client_attempts", {
  description: "Attempts of calls, by model, replica, reason (first, retry, hedge) and outcome",
  incremental: true,
})

const ejections = Metric.counter("nereid_client_ejections", {
  description: "Replicas taken out after failures, by model and replica",
  incremental: true,
})

const replicas = Metric.gauge("nereid_client_replicas", { description: "Replicas that are listed, by model" })

const durations = Metric.histogram("nereid_client_attempt_seconds", {
  description: "Duration of successful attempts in seconds, by model and replica",
  boundaries: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
})

/** Replicas whose series are kept, for each client: addresses of a name may change without end. */
const maxSeries = 1_000

interface ReplicaSeries {
  readonly attempts: Map<string, typeof attempts>
  readonly duration: typeof durations
}

export class EffectMetrics implements AttemptMetrics {
  readonly #model: string
  readonly #context: Context.Context<never>
  readonly #series = new Map<string, ReplicaSeries>()

  constructor(model: string, context: Context.Context<never>) {
    this.#model = model
    this.#context = context
  }

  attempted({ address }: Replica, reason: AttemptReason, outcome: AttemptOutcome, millis: number): void {
    const name = this.#name(address)
    const series = this.#of(name)
    const key = `${reason} ${outcome}`
    let counter = series.attempts.get(key)
    if (counter === undefined) {
      // In the order that /metrics of a server has.
      counter = Metric.withAttributes(attempts, { model: this.#model, outcome, reason, replica: name })
      series.attempts.set(key, counter)
    }
    counter.updateUnsafe(1, this.#context)
    if (outcome === "success") series.duration.updateUnsafe(millis / 1000, this.#context)
  }

  ejected({ address }: Replica): void {
    const attributes = { model: this.#model, replica: this.#name(address) }
    Metric.withAttributes(ejections, attributes).updateUnsafe(1, this.#context)
  }

  listed(count: number): void {
    Metric.withAttributes(replicas, { model: this.#model }).updateUnsafe(count, this.#context)
  }

  #name(address: string): string {
    return this.#series.has(address) || this.#series.size < maxSeries ? address : "other"
  }

  #of(name: string): ReplicaSeries {
    const known = this.#series.get(name)
    if (known !== undefined) return known
    const duration = Metric.withAttributes(durations, { model: this.#model, replica: name })
    const series = { attempts: new Map(), duration }
    this.#series.set(name, series)
    return series
  }
}
