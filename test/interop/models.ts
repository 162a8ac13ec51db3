/**
 * The models for the clients: one for every datatype, the examples, sums of sequences, and models that refuse, fail or
 * never answer.
 */
import { Errors, Model, RequestContext, Tensor } from "@nereid/core"
import { Effect, Layer, Stream } from "effect"
import { AddSub, AddSubLive, Digits, DigitsLive } from "../../examples/models.ts"

const everyDatatype = {
  BOOL: Tensor.BOOL(-1),
  UINT8: Tensor.UINT8(-1),
  UINT16: Tensor.UINT16(-1),
  UINT32: Tensor.UINT32(-1),
  UINT64: Tensor.UINT64(-1),
  INT8: Tensor.INT8(-1),
  INT16: Tensor.INT16(-1),
  INT32: Tensor.INT32(-1),
  INT64: Tensor.INT64(-1),
  FP16: Tensor.FP16(-1),
  FP32: Tensor.FP32(-1),
  FP64: Tensor.FP64(-1),
  BF16: Tensor.BF16(-1),
  BYTES: Tensor.BYTES(-1),
}

/** A tensor of every datatype, named after it, as it came. */
class EveryDatatype extends Model.Service<EveryDatatype>()("every_datatype", {
  inputs: everyDatatype,
  outputs: everyDatatype,
}) {}

/** Sum and difference, with the names and shapes that other servers' examples have. */
class Simple extends Model.Service<Simple>()("simple", {
  inputs: { INPUT0: Tensor.INT32(16), INPUT1: Tensor.INT32(16) },
  outputs: { OUTPUT0: Tensor.INT32(16), OUTPUT1: Tensor.INT32(16) },
  maxBatchSize: 8,
}) {}

/** As large as one likes, as it came. */
class Large extends Model.Service<Large>()("large", {
  inputs: { X: Tensor.UINT8("n") },
  outputs: { Y: Tensor.UINT8("n") },
}) {}

/** Numbers as they came, and a label. */
class Scores extends Model.Service<Scores>()("scores", {
  inputs: { X: Tensor.FP32("n") },
  outputs: { SCORE: Tensor.FP32("n"), CLASS: Tensor.labels(["cat", "dog"]) },
  maxBatchSize: 4,
}) {}

/** One input may be left out. */
class Optional extends Model.Service<Optional>()("optional", {
  inputs: { TEXT: Tensor.utf8(), SUFFIX: Tensor.optional(Tensor.utf8()) },
  outputs: { TEXT: Tensor.utf8() },
}) {}

/** Answers no request; each is in its hands, or in its queue, until the caller takes it back. */
class Never extends Model.Service<Never>()("never", {
  inputs: { X: Tensor.INT32(1) },
  outputs: { X: Tensor.INT32(1) },
}) {}

/** Fails with the text of its input; `full` is a full queue. */
class Failing extends Model.Service<Failing>()("failing", {
  inputs: { TEXT: Tensor.utf8() },
  outputs: { TEXT: Tensor.utf8() },
}) {}

/** Returns the parameters of the request as response parameters. */
class Repeating extends Model.Service<Repeating>()("repeating", {
  inputs: { X: Tensor.INT32(1) },
  outputs: { X: Tensor.INT32(1) },
}) {}

/** Decoupled: a response for every number, and a failure for a negative one. */
class Counting extends Model.Service<Counting>()("counting", {
  inputs: { IN: Tensor.INT32(-1) },
  outputs: { OUT: Tensor.INT32(1) },
}) {}

/** Sums of sequences. */
class Sums extends Model.Service<Sums>()("sums", {
  inputs: { VALUE: Tensor.scalar("INT32") },
  outputs: { TOTAL: Tensor.scalar("INT32") },
  maxBatchSize: 8,
  sequence: { state: { SUM: Tensor.scalar("INT32") } },
}) {}

const int32 = (shape: readonly [number, 16], data: Int32Array) => Tensor.make("INT32", shape, data)

export const models = [
  AddSub,
  Digits,
  EveryDatatype,
  Simple,
  Large,
  Scores,
  Optional,
  Never,
  Failing,
  Repeating,
  Counting,
  Sums,
] as const

export const layer = Layer.mergeAll(
  AddSubLive,
  DigitsLive,
  Model.batch(EveryDatatype, (tensors) => Effect.succeed(tensors)),
  Model.batch(Simple, ({ INPUT0, INPUT1 }) =>
    Effect.succeed({
      OUTPUT0: int32(
        INPUT0.shape,
        INPUT0.data.map((value, index) => value + (INPUT1.data[index] ?? 0)),
      ),
      OUTPUT1: int32(
        INPUT0.shape,
        INPUT0.data.map((value, index) => value - (INPUT1.data[index] ?? 0)),
      ),
    }),
  ),
  Model.each(Large, ({ X }) => Effect.succeed({ Y: X })),
  Model.each(Scores, ({ X }) => Effect.succeed({ SCORE: X, CLASS: "dog" as const })),
  Model.each(Optional, ({ TEXT, SUFFIX = "" }) => Effect.succeed({ TEXT: TEXT + SUFFIX })),
  Model.each(Never, () => Effect.never),
  Model.each(Failing, ({ TEXT }) =>
    Effect.fail(TEXT === "full" ? new Errors.QueueFull({ message: "Exceeds maximum queue size" }) : new Error(TEXT)),
  ),
  Model.each(
    Repeating,
    Effect.fnUntraced(function* ({ X }) {
      const context = yield* RequestContext
      yield* Effect.forEach(Object.entries(context.parameters), ([name, value]) => context.setParameter(name, value))
      return { X }
    }),
  ),
  Model.sequence(Sums, ({ VALUE }, { state: { SUM } }) => {
    if (VALUE < 0) throw new Errors.InvalidRequest({ message: `${VALUE} is negative` })
    return { outputs: { TOTAL: SUM + VALUE }, state: { SUM: SUM + VALUE } }
  }),
  Model.stream(Counting, ({ IN }) =>
    Stream.fromIterable(IN.data).pipe(
      Stream.mapEffect((number) =>
        number < 0
          ? Effect.fail(new Error(`${number} is negative`))
          : Effect.succeed({ OUT: Tensor.make("INT32", [1], Int32Array.of(number)) }),
      ),
    ),
  ),
)
