/** The models of the server as the live view shows them, in the order of the index. */
import type { Origin } from "@nereid/core/internal/lifecycle/ModelVersion"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import type { LiveModel, ModelSource, RunningDetails } from "@nereid/dashboard/internal/live/LiveModel"
import { Duration } from "effect"
import type { Gateway } from "../gateway/Gateway.ts"

export const make = ({ index, models }: Pick<Gateway, "index" | "models">): ReadonlyArray<LiveModel> => {
  const running = new Map(
    models.models.map((model) => [`${model.description.name}/${model.description.version}`, model] as const),
  )
  return index().map(({ name, version = "", state = "UNKNOWN", reason = "" }) => {
    const model = running.get(`${name}/${version}`)
    const details = model && detailsOf(model, models.versionOf(model)?.origin ?? "code")
    return { name, version, state, reason, ...(details && { running: details }) }
  })
}

const detailsOf = ({ description, calls, life }: RunningModel, origin: Origin): RunningDetails => {
  const { threaded, maxBatchSize, responseCache, batching } = description
  return {
    source: sourceOf(description, origin),
    origin,
    threaded,
    decoupled: calls.decoupled,
    maxBatchSize,
    maxQueueSize: batching.queueing?.defaultPolicy.maxQueueSize ?? batching.maxQueueSize,
    maxQueueDelay: Duration.toMillis(batching.maxQueueDelay),
    instances: life.activity().instances,
    cache: responseCache,
  }
}

const sourceOf = ({ platform, modelFile }: RunningModel["description"], origin: Origin): ModelSource => {
  if (platform === "ensemble") return "ensemble"
  if (platform === "nereid_client") return "remote"
  if (modelFile !== undefined || platform === "onnxruntime_onnx") return "onnx"
  return origin === "repository" ? "script" : "code"
}
