/** Models whose queue holds all requests of a flood, which then wait instead of being refused. */
import { Model, Tensor } from "@nereid/core"
import { Onnx } from "@nereid/onnx"
import { Effect, Layer } from "effect"

const batching = { maxQueueSize: 20_000 }

const vectors = { INPUT0: Tensor.FP32(16), INPUT1: Tensor.FP32(16) }

/** As Steady of models.ts. */
class DeepSteady extends Model.Service<DeepSteady>()("deep_steady", {
  inputs: vectors,
  outputs: vectors,
  maxBatchSize: 32,
  batching,
}) {}

const DeepSteadyLive = Model.batch(DeepSteady, (inputs) => Effect.delay(Effect.succeed(inputs), "10 millis"))

/** As examples/digits. */
class DeepDigits extends Model.Service<DeepDigits>()("deep_digits", {
  inputs: { image: Tensor.FP32(1, 28, 28) },
  outputs: { logits: Tensor.FP32(10) },
  maxBatchSize: 64,
  batching,
}) {}

const DeepDigitsLive = Onnx.layer(DeepDigits, { file: new URL("../../examples/digits/digits.onnx", import.meta.url) })

/** Costs as much as examples/add-sub. */
class DeepEcho extends Model.Service<DeepEcho>()("deep_echo", {
  inputs: vectors,
  outputs: vectors,
  maxBatchSize: 64,
  batching,
}) {}

const DeepEchoLive = Model.batch(DeepEcho, (inputs) => Effect.succeed(inputs))

export const models = [DeepSteady, DeepDigits, DeepEcho] as const
export const live = Layer.mergeAll(DeepSteadyLive, DeepDigitsLive, DeepEchoLive)
