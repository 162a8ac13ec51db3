/**
 * The models of the cases. Their outputs follow from their inputs, so that cases can state them directly; the cases
 * also test the limits of valid inputs.
 */
import { fromTag } from "@nereid/core/internal/error/InferenceError"
import { Context, Effect, Layer, Stream } from "effect"
import { Errors, Model, RequestContext, Tensor } from "@nereid/core"
import type { Fields } from "@nereid/core/internal/model/Field"
import { RunningModel } from "@nereid/core/internal/running/RunningModel"
import { make } from "@nereid/core/internal/tensor/TypedTensor"
import { Onnx } from "@nereid/onnx"
import { addSub, file, ragged } from "../fixtures/onnx.ts"
import { gatedExecution } from "./GatedExecution.ts"

/** One of every datatype, of any length. */
const vectors = {
  BOOL: Tensor.BOOL("n"),
  UINT8: Tensor.UINT8("n"),
  UINT16: Tensor.UINT16("n"),
  UINT32: Tensor.UINT32("n"),
  UINT64: Tensor.UINT64("n"),
  INT8: Tensor.INT8("n"),
  INT16: Tensor.INT16("n"),
  INT32: Tensor.INT32("n"),
  INT64: Tensor.INT64("n"),
  FP16: Tensor.FP16("n"),
  FP32: Tensor.FP32("n"),
  FP64: Tensor.FP64("n"),
  BF16: Tensor.BF16("n"),
  BYTES: Tensor.BYTES("n"),
}

/** A model that answers its inputs, as outputs of the same names. */
const echo = <F extends Fields>(name: string, fields: F, maxBatchSize: number) => {
  class Echo extends Model.Service<Echo>()(name, { inputs: fields, outputs: fields, maxBatchSize }) {}
  return { model: Echo, layer: Model.each(Echo, (sample: Model.Sample<F>) => Effect.succeed(sample)) }
}

/** `batched_fp32` takes X of at most 8 rows of any length, `single_fp32` has no batch dimension. */
const echoes = Object.entries(vectors).flatMap(([datatype, field]) => [
  echo(`batched_${datatype.toLowerCase()}`, { X: field }, 8),
  echo(`single_${datatype.toLowerCase()}`, { X: field }, 0),
])

/** Triton's `simple`: OUTPUT0 = INPUT0 + INPUT1, OUTPUT1 = INPUT0 - INPUT1. */
class Simple extends Model.Service<Simple>()("simple", {
  inputs: { INPUT0: Tensor.INT32(16), INPUT1: Tensor.INT32(16) },
  outputs: { OUTPUT0: Tensor.INT32(16), OUTPUT1: Tensor.INT32(16) },
  maxBatchSize: 8,
}) {}

/** The same by ONNX Runtime, in FP32 [2] under A, B, SUM and DIFFERENCE. */
class OnnxSimple extends Model.Service<OnnxSimple>()("onnx_simple", {
  inputs: { A: Tensor.FP32(2), B: Tensor.FP32(2) },
  outputs: { SUM: Tensor.FP32(2), DIFFERENCE: Tensor.FP32(2) },
  maxBatchSize: 4,
}) {}

/** Requests of any lengths in one batch, one behind another, by ONNX Runtime: Y = X + X. */
class Ragged extends Model.Service<Ragged>()("ragged", {
  inputs: { X: Tensor.FP32("n", 2) },
  outputs: { Y: Tensor.FP32("n", 2) },
  maxBatchSize: 4,
  batching: { maxQueueDelay: "2 millis" },
}) {}

/** Shapes of all kinds in one signature; B may be left out, and is answered as no elements then. */
class Shapes extends Model.Service<Shapes>()("shapes", {
  inputs: { A: Tensor.FP32("n", 2), B: Tensor.optional(Tensor.INT64("m")), C: Tensor.FP32("n"), D: Tensor.UINT8() },
  outputs: { A: Tensor.FP32("n", 2), B: Tensor.INT64("m"), C: Tensor.FP32("n"), D: Tensor.UINT8() },
}) {}

class Matrix extends Model.Service<Matrix>()("matrix", {
  inputs: { X: Tensor.FP32(-1, -1) },
  outputs: { X: Tensor.FP32(-1, -1) },
}) {}

class Pair extends Model.Service<Pair>()("pair", {
  inputs: { X: Tensor.BYTES(2) },
  outputs: { X: Tensor.BYTES(2) },
}) {}

class Text extends Model.Service<Text>()("text", {
  inputs: { TEXT: Tensor.utf8() },
  outputs: { TEXT: Tensor.utf8() },
  maxBatchSize: 4,
}) {}

class Scores extends Model.Service<Scores>()("scores", {
  inputs: { X: Tensor.FP32("n") },
  outputs: {
    SCORE: Tensor.FP32("n"),
    CLASS: Tensor.labels(["cat", "dog"]),
    TEXT: Tensor.BYTES(1),
    HALF: Tensor.FP16(1),
  },
  maxBatchSize: 4,
}) {}

/** Version 1 of two; a service key identifies one model, so version 3 has another key. */
class First extends Model.Service<First>()("versions", {
  inputs: { X: Tensor.INT32(1) },
  outputs: { VERSION: Tensor.INT32(1) },
}) {}

class ThirdAlone extends Model.Service<ThirdAlone>()("versions", {
  inputs: { X: Tensor.INT32(1) },
  outputs: { VERSION: Tensor.INT32(1) },
  version: 3,
}) {}

class Third extends Context.Service<Third, { readonly model: RunningModel }>()("conformance/Third") {}

const version = (number: number) => () => Effect.succeed({ VERSION: make("INT32", [1], Int32Array.of(number)) })

const thirdLive = Layer.effect(
  Third,
  Effect.map(Layer.build(Model.each(ThirdAlone, version(3))), (context) => ({
    model: Context.get(context, ThirdAlone).model,
  })),
)

/** A model that has stopped for good: what `simple` is without instances. */
class Stopped extends Context.Service<Stopped, { readonly model: RunningModel }>()("conformance/Stopped") {}

const stoppedLive = Layer.effect(
  Stopped,
  Effect.map(Simple, ({ model: { description, calls, life } }) => ({
    model: new RunningModel({
      description: { ...description, name: "stopped" },
      calls,
      life: { ...life, isReady: () => false, probe: Effect.succeed(false) },
    }),
  })),
)

/** Fails with the error whose tag it receives; with an error of the model for any other text. */
class Fail extends Model.Service<Fail>()("fail", {
  inputs: { TAG: Tensor.utf8() },
  outputs: { TAG: Tensor.utf8() },
}) {}

export const failure = "the model's own text: 100 % naïve"

/** Does not answer until its request is cancelled; one request may wait in the queue. */
class Stuck extends Model.Service<Stuck>()("stuck", {
  inputs: { X: Tensor.INT32(1) },
  outputs: { X: Tensor.INT32(1) },
  batching: { maxQueueSize: 1 },
}) {}

/** How many requests have come to run in it. */
export const stuck = { entered: 0 }

/**
 * Levels of requests that wait while one called `hold` runs: the first has little room, the last little time, the third
 * delays.
 */
class Levels extends Model.Service<Levels>()("levels", {
  inputs: { X: Tensor.INT32(1) },
  outputs: { X: Tensor.INT32(1) },
  batching: {
    maxQueueSize: 4,
    defaultTimeout: "20 seconds",
    allowTimeoutOverride: true,
    priorities: {
      levels: 4,
      default: 2,
      policies: {
        1: { maxQueueSize: 1 },
        3: { defaultTimeout: "20 seconds", timeoutAction: "DELAY", allowTimeoutOverride: true },
        4: { defaultTimeout: "1 milli", allowTimeoutOverride: true },
      },
    },
  },
}) {}

/** The same with times that delay, and no levels. */
class Delays extends Model.Service<Delays>()("delays", {
  inputs: { X: Tensor.INT32(1) },
  outputs: { X: Tensor.INT32(1) },
  batching: { defaultTimeout: "20 seconds", timeoutAction: "DELAY", allowTimeoutOverride: true },
}) {}

/** Two at a time, answered in the order in which they came. */
class Ordered extends Model.Service<Ordered>()("ordered", {
  inputs: { X: Tensor.INT32(1) },
  outputs: { X: Tensor.INT32(1) },
  batching: { preserveOrdering: true },
}) {}

const holding = <S>(sample: S) =>
  Effect.flatMap(RequestContext, ({ id }) =>
    Effect.as(
      Effect.promise(() => gatedExecution.execute([id])),
      sample,
    ),
  )

/** Waits for four rows, up to a delay. */
class Gathers extends Model.Service<Gathers>()("gathers", {
  inputs: { X: Tensor.INT32(1) },
  outputs: { X: Tensor.INT32(1) },
  maxBatchSize: 4,
  batching: { maxQueueDelay: "20 seconds", preferredBatchSizes: [4] },
}) {}

/** Decoupled: 0, 1, … up to X; fails behind as many as X says where it is negative. */
class Counts extends Model.Service<Counts>()("counts", {
  inputs: { X: Tensor.INT32(1) },
  outputs: { Y: Tensor.INT32(1) },
}) {}

/** Decoupled: all rows of a request, then each row by itself. */
class Apart extends Model.Service<Apart>()("apart", {
  inputs: { X: Tensor.INT32(1) },
  outputs: { Y: Tensor.INT32(1) },
  maxBatchSize: 4,
}) {}

export const noWayDown = "no way down"

const counted = (to: number) => {
  const numbers = Stream.map(Stream.range(1, Math.abs(to)), (number) => ({
    Y: make("INT32", [1], Int32Array.of(number)),
  }))
  if (to >= 0) return to === 0 ? Stream.empty : numbers
  return Stream.concat(numbers, Stream.fail(new Errors.InvalidRequest({ message: noWayDown })))
}

/** Answers with its id and its parameters, and sets a parameter of every kind. */
class ParametersModel extends Model.Service<ParametersModel>()("asked", {
  inputs: { X: Tensor.INT32(1) },
  outputs: { PARAMETERS: Tensor.utf8() },
}) {}

const printParameters = Effect.gen(function* () {
  const { id, parameters, setParameter } = yield* RequestContext
  yield* setParameter("flag", true)
  yield* setParameter("count", 2n ** 62n)
  yield* setParameter("share", 0.5)
  yield* setParameter("text", "größe")
  const entries = Object.entries(parameters).toSorted(([a], [b]) => (a < b ? -1 : 1))
  const texts = entries.map(([name, value]) => `${name}: ${typeof value} ${value}`)
  return { PARAMETERS: [`id: ${id}`, ...texts].join("; ") }
})

const zip = (a: Int32Array, b: Int32Array, f: (a: number, b: number) => number) =>
  a.map((element, index) => f(element, b[index] ?? 0))

const onnxLive = Layer.unwrap(
  Effect.map(file(addSub("FP32", ["batch", 2])), (path) => Onnx.layer(OnnxSimple, { file: path })),
)

const flat = {
  inputs: ["X"],
  batchInputs: { ENDS: { kind: "BATCH_ACCUMULATED_ELEMENT_COUNT", datatype: "INT32", source: "X" } },
  batchOutputs: { Y: "X" },
} as const

const raggedLive = Layer.unwrap(Effect.map(file(ragged()), (path) => Onnx.layer(Ragged, { file: path, flat })))

/** Provides them all. */
export const layer = Layer.mergeAll(
  onnxLive,
  raggedLive,
  thirdLive,
  stoppedLive,
  Model.each(First, version(1)),
  Model.each(Shapes, ({ A, B, C, D }) => Effect.succeed({ A, B: B ?? make("INT64", [0], new BigInt64Array()), C, D })),
  Model.each(Matrix, (sample) => Effect.succeed(sample)),
  Model.each(Pair, (sample) => Effect.succeed(sample)),
  Model.each(Text, (sample) => Effect.succeed(sample)),
  Model.each(Scores, ({ X }) =>
    Effect.succeed({
      SCORE: X,
      CLASS: "dog" as const,
      TEXT: make("BYTES", [1], [new Uint8Array()]),
      HALF: make("FP16", [1], Float16Array.of(1)),
    }),
  ),
  Model.each(Fail, ({ TAG }) => Effect.fail(fromTag(TAG, failure) ?? new Error(failure))),
  Model.each(Stuck, () => {
    stuck.entered += 1
    return Effect.never
  }),
  Model.each(Gathers, (sample) => Effect.succeed(sample)),
  Model.each(Levels, holding),
  Model.each(Delays, holding),
  Model.each(Ordered, holding, { instances: 2 }),
  Model.each(ParametersModel, () => printParameters),
  Model.streamBatch(Apart, function* ({ X }) {
    yield { Y: X }
    for (const x of X.data) yield { Y: make("INT32", [1, 1], Int32Array.of(x)) }
  }),
  Model.stream(Counts, ({ X: { data } }) => counted(data[0] ?? 0)),
  ...echoes.map(({ layer }) => layer),
).pipe(
  Layer.provideMerge(
    Model.batch(Simple, ({ INPUT0, INPUT1 }) =>
      Effect.succeed({
        OUTPUT0: make(
          "INT32",
          INPUT0.shape,
          zip(INPUT0.data, INPUT1.data, (a, b) => a + b),
        ),
        OUTPUT1: make(
          "INT32",
          INPUT0.shape,
          zip(INPUT0.data, INPUT1.data, (a, b) => a - b),
        ),
      }),
    ),
  ),
)

/** Models of every server under test. */
export const models = [
  Simple,
  OnnxSimple,
  Ragged,
  Shapes,
  Matrix,
  Pair,
  Text,
  Scores,
  First,
  Third,
  Fail,
  Stuck,
  Gathers,
  Levels,
  Delays,
  Ordered,
  ParametersModel,
  Counts,
  Apart,
  ...echoes.map(({ model }) => model),
] as const

export const stopped = Stopped
