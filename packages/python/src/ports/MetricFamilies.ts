/**
 * Metrics that the code of models in Python makes, in the metrics of the server. Families are shared by name: by all
 * models and processes. They exist as long as one of these uses them. Labels are those that the code gives.
 */
import { Context, Metric, Result } from "effect"
import * as MetricFamily from "@nereid/core/internal/metrics/MetricFamily"
import { seriesMetric } from "@nereid/core/internal/metrics/MetricSink"
import type { MetricOperation, ModelPorts } from "../process/ModelPorts.ts"

type Kind = MetricFamily.FamilySpec["kind"]

interface Family {
  readonly name: string
  readonly description: string
  readonly kind: Kind
  readonly series: Map<string, Series>
  users: number
}

interface Series {
  readonly metric: Metric.Metric<number, unknown>
  /** Of a counter or gauge. */
  value: number
  users: number
}

/** Families by name, of one registry. */
const kept = new WeakMap<Metric.MetricRegistry, Map<string, Family>>()

/** Families of all models in Python of a server. */
const maxFamilies = 1000
/** Series of one family. */
const maxSeries = 1000

type Applied = Result.Result<number | undefined, string>

const done: Applied = Result.succeed(undefined)

/** The metrics of one process. */
export const make = (registry: Metric.MetricRegistry): ReturnType<ModelPorts["metrics"]> => {
  const all = kept.get(registry) ?? new Map<string, Family>()
  kept.set(registry, all)
  const process = new ProcessMetrics(registry, all)
  return { apply: (operation) => process.apply(operation), release: () => process.release() }
}

class ProcessMetrics {
  readonly #registry: Metric.MetricRegistry
  readonly #context: Context.Context<never>
  readonly #all: Map<string, Family>
  /** By the numbers of the process. */
  readonly #families = new Map<number, Family>()
  readonly #metrics = new Map<number, { readonly family: Family; readonly key: string; readonly series: Series }>()

  constructor(registry: Metric.MetricRegistry, all: Map<string, Family>) {
    this.#registry = registry
    this.#context = Context.make(Metric.MetricRegistry, registry)
    this.#all = all
  }

  apply(operation: MetricOperation): Applied {
    switch (operation.do) {
      case "family":
        return this.#addFamily(operation)
      case "metric":
        return this.#addMetric(operation)
      case "drop_family":
        this.#dropFamily(Number(operation["family"]))
        return done
      case "drop_metric":
        this.#dropMetric(Number(operation["metric"]))
        return done
      case "value":
        return this.#value(Number(operation["metric"]))
      case "increment":
      case "set":
      case "observe":
        return this.#update(operation.do, Number(operation["metric"]), Number(operation["value"]))
      default:
        return Result.fail(`unknown operation '${operation.do}' on a metric`)
    }
  }

  /** The process has ended. */
  release(): void {
    for (const number of this.#metrics.keys()) this.#dropMetric(number)
    for (const number of this.#families.keys()) this.#dropFamily(number)
  }

  #addFamily({ family: number, name, description, kind }: MetricOperation): Applied {
    const given: MetricFamily.FamilySpec = {
      kind: kind === "counter" || kind === "gauge" ? kind : "histogram",
      name: String(name),
      description: String(description),
      labels: {},
      // Those of its metrics may differ.
      boundaries: [0],
    }
    const problem = problemOf(given)
    if (problem !== undefined) return Result.fail(problem)
    const known = this.#all.get(given.name)
    if (known !== undefined && known.kind !== given.kind) {
      return Result.fail(`a metric family '${given.name}' of another kind, ${known.kind}, already exists`)
    }
    if (known === undefined && this.#isForeign(given.name)) {
      return Result.fail(`the metric '${given.name}' belongs to another part of the server`)
    }
    if (known === undefined && this.#all.size >= maxFamilies) {
      return Result.fail(`models in Python have ${maxFamilies} metric families already`)
    }
    const family = known ?? {
      name: given.name,
      description: given.description,
      kind: given.kind,
      series: new Map(),
      users: 0,
    }
    family.users += 1
    this.#all.set(family.name, family)
    this.#families.set(Number(number), family)
    return done
  }

  /** Whether other code has a metric of this name. */
  #isForeign(name: string): boolean {
    return [...this.#registry.values()].some(({ id }) => id === name)
  }

  #addMetric({ family: number, metric, labels, buckets }: MetricOperation): Applied {
    const family = this.#families.get(Number(number))
    if (family === undefined) return Result.fail("its family has been deleted")
    const attributes = labelsOf(labels)
    const boundaries = (Array.isArray(buckets) ? buckets : []).map(Number).filter(Number.isFinite)
    const problem = problemOf({
      ...family,
      labels: Object.fromEntries(Object.keys(attributes).map((name) => [name, ["any"]])),
      boundaries: [0],
    })
    if (problem !== undefined) return Result.fail(problem)
    const key = JSON.stringify(attributes)
    const known = family.series.get(key)
    if (known === undefined && family.series.size >= maxSeries) {
      return Result.fail(`the metric family '${family.name}' has ${maxSeries} metrics already`)
    }
    const series = known ?? { metric: seriesMetric({ ...family, boundaries }, attributes), value: 0, users: 0 }
    // Reading it shows it, before the first update.
    if (known === undefined) series.metric.valueUnsafe(this.#context)
    series.users += 1
    family.series.set(key, series)
    this.#metrics.set(Number(metric), { family, key, series })
    return done
  }

  #dropFamily(number: number): void {
    const family = this.#families.get(number)
    if (family === undefined) return
    this.#families.delete(number)
    family.users -= 1
    if (family.users > 0) return
    this.#all.delete(family.name)
    for (const [metric, used] of this.#metrics) if (used.family === family) this.#metrics.delete(metric)
    for (const { metric } of family.series.values()) Metric.removeUnsafe(metric, this.#context)
    family.series.clear()
  }

  #dropMetric(number: number): void {
    const used = this.#metrics.get(number)
    if (used === undefined) return
    this.#metrics.delete(number)
    const { family, key, series } = used
    series.users -= 1
    if (series.users > 0) return
    family.series.delete(key)
    Metric.removeUnsafe(series.metric, this.#context)
  }

  #value(number: number): Applied {
    const used = this.#metrics.get(number)
    if (used === undefined) return Result.fail(deleted)
    const { family, series } = used
    return family.kind === "histogram" ? unsupported(family, "Value") : Result.succeed(series.value)
  }

  #update(operation: "increment" | "set" | "observe", number: number, value: number): Applied {
    const used = this.#metrics.get(number)
    if (used === undefined) return Result.fail(deleted)
    const { family, series } = used
    if (!operations[family.kind].includes(operation)) return unsupported(family, titles[operation])
    if (!Number.isFinite(value)) return Result.fail(`a metric takes finite numbers, but ${value} was given`)
    if (family.kind === "counter" && value < 0) {
      const rule = "can only be incremented monotonically by non-negative values"
      return Result.fail(`${kindName(family)} ${rule}, but ${value} was given`)
    }
    if (family.kind === "histogram") {
      series.metric.updateUnsafe(value, this.#context)
      return done
    }
    series.value = operation === "increment" ? series.value + value : value
    // A counter adds what it is given, and a gauge takes it.
    series.metric.updateUnsafe(family.kind === "counter" ? value : series.value, this.#context)
    return done
  }
}

const deleted = "its family has been deleted"

const operations: Readonly<Record<Kind, ReadonlyArray<string>>> = {
  counter: ["increment"],
  gauge: ["increment", "set"],
  histogram: ["observe"],
}

const titles = { increment: "Increment", set: "Set", observe: "Observe" } as const

const kindName = ({ kind }: Family) => `TRITONSERVER_METRIC_KIND_${kind.toUpperCase()}`

const unsupported = (family: Family, operation: string): Applied =>
  Result.fail(`${kindName(family)} does not support ${operation}`)

/** Those of Prometheus itself. */
const reservedLabels: ReadonlySet<string> = new Set(["le", "quantile"])

/** Why Prometheus does not allow a name. */
const problemOf = (spec: MetricFamily.FamilySpec): string | undefined => {
  try {
    MetricFamily.check(spec, reservedLabels)
    return undefined
  } catch (error) {
    return error instanceof TypeError ? error.message : String(error)
  }
}

/** In the order of their names, so that equal labels are equal texts. */
const labelsOf = (labels: unknown): Readonly<Record<string, string>> =>
  typeof labels !== "object" || labels === null
    ? {}
    : Object.fromEntries(
        Object.entries(labels)
          .map(([name, value]) => [name, String(value)] as const)
          .toSorted(([one], [next]) => (one < next ? -1 : 1)),
      )
