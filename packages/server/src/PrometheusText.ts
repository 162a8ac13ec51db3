/** The models' statistics in Prometheus' text format, under the names that the protocol's dashboards know. */
import type { RunningModel } from "@nereid/core/RunningModel"
import type { FailureReason, Statistics } from "@nereid/core/Statistics"

interface Family {
  readonly name: string
  readonly type: "counter" | "gauge"
  readonly help: string
  readonly value: (model: RunningModel) => number
}

const microseconds = (duration: (statistics: Statistics) => { readonly ns: number }) => (model: RunningModel) =>
  Math.floor(duration(model.statistics).ns / 1000)

const success: Family = {
  name: "nv_inference_request_success",
  type: "counter",
  help: "Requests that were answered with outputs",
  value: ({ statistics }) => statistics.success.count,
}

const failure = {
  name: "nv_inference_request_failure",
  type: "counter",
  help: "Requests that failed, by reason",
} as const

const reasons: ReadonlyArray<FailureReason> = ["REJECTED", "CANCELED", "BACKEND", "OTHER"]

const families: ReadonlyArray<Family> = [
  {
    name: "nv_inference_count",
    type: "counter",
    help: "Rows that were inferred: a request of a batch of n counts n",
    value: ({ statistics }) => statistics.inferenceCount,
  },
  {
    name: "nv_inference_exec_count",
    type: "counter",
    help: "Batches that were executed",
    value: ({ statistics }) => statistics.executionCount,
  },
  {
    name: "nv_inference_request_duration_us",
    type: "counter",
    help: "Microseconds from accepting to answering, summed over requests",
    value: microseconds((statistics) => statistics.success),
  },
  {
    name: "nv_inference_queue_duration_us",
    type: "counter",
    help: "Microseconds in the queue, summed over requests",
    value: microseconds((statistics) => statistics.queue),
  },
  {
    name: "nv_inference_compute_input_duration_us",
    type: "counter",
    help: "Microseconds of bringing inputs in, summed over requests",
    value: microseconds((statistics) => statistics.computeInput),
  },
  {
    name: "nv_inference_compute_infer_duration_us",
    type: "counter",
    help: "Microseconds of running the model, summed over requests",
    value: microseconds((statistics) => statistics.computeInfer),
  },
  {
    name: "nv_inference_compute_output_duration_us",
    type: "counter",
    help: "Microseconds of taking outputs out, summed over requests",
    value: microseconds((statistics) => statistics.computeOutput),
  },
  {
    name: "nv_inference_pending_request_count",
    type: "gauge",
    help: "Requests accepted and not yet handed to an instance",
    value: (model) => model.pending(),
  },
  {
    name: "nv_model_load_duration_secs",
    type: "gauge",
    help: "Seconds that loading the model took",
    value: ({ statistics }) => statistics.loadSeconds,
  },
]

export const write = (models: ReadonlyArray<RunningModel>): string => {
  const lines: Array<string> = []
  const head = ({ name, type, help }: Pick<Family, "name" | "type" | "help">) =>
    lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`)
  const family = (one: Family) => {
    head(one)
    for (const model of models) lines.push(`${one.name}${labels(model)} ${one.value(model)}`)
  }
  family(success)
  head(failure)
  for (const model of models) {
    for (const reason of reasons) {
      lines.push(`${failure.name}${labels(model, { reason })} ${model.statistics.failures[reason]}`)
    }
  }
  families.forEach(family)
  return `${lines.join("\n")}\n`
}

const labels = ({ name, version }: RunningModel, more: { readonly [label: string]: string } = {}): string => {
  const all = Object.entries({ model: name, version, ...more }).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return `{${all.map(([label, value]) => `${label}="${escaped(value)}"`).join(",")}}`
}

const escaped = (value: string): string => value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n")
