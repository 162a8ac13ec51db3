/** Models without computation, to measure only the transport: of large tensors, and of queued requests. */
import { Model, Tensor } from "@nereid/core"
import { Effect, Layer } from "effect"

const picture = Tensor.FP32(3, 224, 224)

/** A large tensor in, its first value out. */
class Glance extends Model.Service<Glance>()("glance", {
  inputs: { image: picture },
  outputs: { first: Tensor.FP32(1) },
  maxBatchSize: 8,
}) {}

const GlanceLive = Model.each(Glance, ({ image }) =>
  Effect.succeed({ first: Tensor.make("FP32", [1], image.data.slice(0, 1)) }),
)

/** A large tensor in and out. */
class Mirror extends Model.Service<Mirror>()("mirror", {
  inputs: { image: picture },
  outputs: { image: picture },
  maxBatchSize: 8,
}) {}

const MirrorLive = Model.each(Mirror, ({ image }) => Effect.succeed({ image }))

/** Never answers: one request runs, all others are queued. */
class Held extends Model.Service<Held>()("held", {
  inputs: { INPUT0: Tensor.FP32("n"), INPUT1: Tensor.FP32("n") },
  outputs: { OUTPUT0: Tensor.FP32("n") },
  maxBatchSize: 1,
  batching: { maxQueueSize: 100_000 },
}) {}

const HeldLive = Model.each(Held, () => Effect.never)

export const models = [Glance, Mirror, Held] as const
export const live = Layer.mergeAll(GlanceLive, MirrorLive, HeldLive)
