/** How a model runs: its batches, instances and the rest of its configuration. */
import type { ModelSource } from "../../src/live/LiveModel.ts"
import type { Model } from "../api/Model.ts"
import type { ModelConfig } from "../api/Protocol.ts"
import { liveModel } from "../live/stream.ts"
import { visible } from "../parts/VisibleText.ts"

export const Facts = ({ model: { name, version, config, decoupled, maxBatchSize } }: { readonly model: Model }) => {
  const running = liveModel(name, version)?.running
  const facts: ReadonlyArray<readonly [string, string]> = [
    ["Source", running === undefined ? configuredSource(config) : sources[running.source](running.origin)],
    ["Batches", batchesOf(config, maxBatchSize)],
    ["Instances", instancesOf(config)],
    ["Responses", decoupled ? "any number to a request, as a stream" : "one to a request"],
    ["Response cache", config.response_cache?.enable === true ? "on" : "off"],
  ]
  return (
    <>
      <dl class="facts">
        {facts.map(([term, value]) => (
          <div key={term}>
            <dt>{term}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <details>
        <summary>Whole configuration</summary>
        <pre tabIndex={0}>{visible(JSON.stringify(config, null, 2))}</pre>
      </details>
    </>
  )
}

/** Source, batches and instances of a model in a few words; empty without live data. */
export const runsAs = (name: string, version: string): string => {
  const running = liveModel(name, version)?.running
  if (running === undefined) return ""
  const { source, maxBatchSize, instances } = running
  return [
    source === "onnx" ? "ONNX" : source,
    ...(maxBatchSize === 0 ? [] : [`batches of up to ${maxBatchSize}`]),
    ...(instances < 2 ? [] : [`${instances} instances`]),
  ].join(", ")
}

const where = { code: "in code", repository: "of a model repository" } as const

/** Sources as the live data names them. */
const sources: Readonly<Record<ModelSource, (origin: keyof typeof where) => string>> = {
  code: () => "code",
  onnx: (origin) => `ONNX file, ${where[origin]}`,
  script: () => "script of a model repository",
  ensemble: (origin) => `ensemble of other models, ${where[origin]}`,
  remote: () => "another server",
}

/** The source without live data, which does not tell code, scripts and other servers apart. */
const configuredSource = ({ platform, backend }: ModelConfig): string => {
  if (platform === "ensemble") return "ensemble of other models"
  if (backend === "onnxruntime") return "ONNX file"
  if (backend === "nereid") return "code or a script"
  return backend || platform
}

const batchesOf = ({ dynamic_batching: batching }: ModelConfig, maxBatchSize: number): string => {
  if (maxBatchSize === 0) return "no batch dimension"
  if (batching === undefined) return `up to ${maxBatchSize} rows, of one request`
  const { preferred_batch_size: preferred, max_queue_delay_microseconds: delay } = batching
  const sizes = preferred.length === 0 ? "" : `, preferably ${preferred.join(" or ")}`
  const wait = Number(delay) === 0 ? "without a delay" : `with a delay of up to ${Number(delay) / 1000} ms`
  return `up to ${maxBatchSize} rows of any requests${sizes}, ${wait}`
}

const instancesOf = ({ instance_group: groups }: ModelConfig): string => {
  if (groups.length === 0) return "none of its own"
  return groups
    .map(
      ({ count, kind, gpus }) =>
        `${count} on ${kind.replace("KIND_", "")}${gpus.length > 0 ? ` ${gpus.join(", ")}` : ""}`,
    )
    .join("; ")
}
