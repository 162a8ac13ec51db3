/** Models with hardly any computation, to measure the rest: large tensors, queued requests and sequences. */
import { Model, Tensor } from "@nereid/core"
import { Effect, Layer } from "effect"
import { tokens } from "./Tokens.ts"

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

/** A request waits this long, in milliseconds, for others that do not come. */
export type Delay = 0 | 2 | 5

/** Answers with its input, after its delay. */
const waiting = (millis: Delay) => {
  class Waiting extends Model.Service<Waiting>()(`waiting_${millis}`, {
    inputs: { INPUT0: Tensor.FP32(16), INPUT1: Tensor.FP32(16) },
    outputs: { INPUT0: Tensor.FP32(16), INPUT1: Tensor.FP32(16) },
    maxBatchSize: 8,
    batching: { maxQueueDelay: millis },
  }) {}
  return { model: Waiting, live: Model.batch(Waiting, (inputs) => Effect.succeed(inputs)) }
}

const [waiting0, waiting2, waiting5] = [waiting(0), waiting(2), waiting(5)]

/** Each batch takes 10 ms, as on another device, whatever its rows. */
export class Steady extends Model.Service<Steady>()("steady", {
  inputs: { INPUT0: Tensor.FP32(16), INPUT1: Tensor.FP32(16) },
  outputs: { INPUT0: Tensor.FP32(16), INPUT1: Tensor.FP32(16) },
  maxBatchSize: 32,
}) {}

export const SteadyLive = Model.batch(Steady, (inputs) => Effect.delay(Effect.succeed(inputs), "10 millis"))

/** As examples/add-sub, with sequences: the state of each one is its last sum. */
class AddSubSequence extends Model.Service<AddSubSequence>()("add_sub_sequence", {
  inputs: { INPUT0: Tensor.FP32("n"), INPUT1: Tensor.FP32("n") },
  outputs: { OUTPUT0: Tensor.FP32("n"), OUTPUT1: Tensor.FP32("n") },
  maxBatchSize: 64,
  sequence: { state: { LAST: Tensor.FP32("n") }, maxIdle: "1 hour" },
}) {}

const AddSubSequenceLive = Model.sequenceBatch(AddSubSequence, ({ INPUT0, INPUT1 }) => {
  const sum = new Float32Array(INPUT0.data.length)
  const difference = new Float32Array(INPUT0.data.length)
  for (let index = 0; index < sum.length; index++) {
    const one = INPUT0.data[index] ?? 0
    const other = INPUT1.data[index] ?? 0
    sum[index] = one + other
    difference[index] = one - other
  }
  const OUTPUT0 = Tensor.make("FP32", INPUT0.shape, sum)
  const OUTPUT1 = Tensor.make("FP32", INPUT0.shape, difference)
  return { outputs: { OUTPUT0, OUTPUT1 }, state: { LAST: OUTPUT0 } }
})

/** Streams as many tokens as its request asks for. */
class Tokens extends Model.Service<Tokens>()("tokens", {
  inputs: { COUNT: Tensor.scalar("INT32") },
  outputs: { TOKEN: Tensor.utf8() },
  maxBatchSize: 64,
}) {}

const TokensLive = Model.stream(Tokens, ({ COUNT }) => tokens(COUNT))

export const models = [
  Glance,
  Mirror,
  Held,
  Steady,
  AddSubSequence,
  Tokens,
  waiting0.model,
  waiting2.model,
  waiting5.model,
] as const
export const live = Layer.mergeAll(
  GlanceLive,
  MirrorLive,
  HeldLive,
  SteadyLive,
  AddSubSequenceLive,
  TokensLive,
  waiting0.live,
  waiting2.live,
  waiting5.live,
)
