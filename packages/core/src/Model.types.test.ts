/**
 * The promise of the types: what must not compile. `tsc` checks each `@ts-expect-error`; the run only proves that the
 * file loads. (Missing model layers and remote clients: test/types.test.ts.)
 */
import { expect, it } from "@effect/vitest"
import { Context, Effect, type Layer, Schema, type Scope, Stream } from "effect"
import * as Model from "./Model.ts"
import { RequestContext } from "./handler/RequestContext.ts"
import * as Tensor from "./Tensor.ts"

class Bert extends Model.Service<Bert>()("bert", {
  inputs: { input_ids: Tensor.INT64("sequence"), attention_mask: Tensor.INT64("sequence") },
  outputs: { logits: Tensor.FP32(2) },
  maxBatchSize: 32,
}) {}

class Sentiment extends Model.Service<Sentiment>()("sentiment", {
  inputs: { TEXT: Tensor.utf8(), MAX: Tensor.optional(Tensor.scalar("INT32")) },
  outputs: { CLASS: Tensor.labels(["negative", "positive"]), PROB: Tensor.scalar("FP32") },
  maxBatchSize: 32,
}) {}

const ids = Tensor.make("INT64", [3], BigInt64Array.of(1n, 2n, 3n))

export const callers = Effect.gen(function* () {
  const bert = yield* Bert
  const sentiment = yield* Sentiment

  const { logits } = yield* bert.infer({ input_ids: ids, attention_mask: ids })
  const data: Float32Array = logits.data
  const shape: readonly [2] = logits.shape
  const { CLASS, PROB } = yield* sentiment.infer({ TEXT: "great" })
  const label: "negative" | "positive" = CLASS
  const probability: number = PROB
  yield* sentiment.infer({ TEXT: "great", MAX: 3 })

  yield* sentiment.infer({ TEXT: "great" }, { priority: 1, queueTimeout: "10 millis" })

  // @ts-expect-error a level is a number
  yield* sentiment.infer({ TEXT: "great" }, { priority: "high" })
  // @ts-expect-error no duration
  yield* sentiment.infer({ TEXT: "great" }, { queueTimeout: "soon" })
  // @ts-expect-error wrong input name
  yield* sentiment.infer({ text: "great" })
  // @ts-expect-error missing input
  yield* bert.infer({ input_ids: ids })
  // @ts-expect-error one input too many
  yield* sentiment.infer({ TEXT: "great", OTHER: 1 })
  // @ts-expect-error wrong input type
  yield* sentiment.infer({ TEXT: 1 })
  // @ts-expect-error wrong datatype
  yield* bert.infer({ input_ids: ids, attention_mask: Tensor.make("INT32", [3], Int32Array.of(1, 1, 1)) })
  // @ts-expect-error wrong rank
  yield* bert.infer({ input_ids: ids, attention_mask: Tensor.make("INT64", [1, 3], BigInt64Array.of(1n, 1n, 1n)) })
  // @ts-expect-error no such output
  void (yield* bert.infer({ input_ids: ids, attention_mask: ids })).pooled
  // @ts-expect-error no such label
  void (CLASS === "neutral")
  // @ts-expect-error a batch has one dimension more than a sample
  yield* bert.inferBatch({ input_ids: ids, attention_mask: ids })
  // @ts-expect-error the elements of INT64 are bigint
  Tensor.make("INT64", [1], Int32Array.of(1))
  return { data, shape, label, probability }
})

/** A handler as users write it. */
export const SentimentLive = Model.each(
  Sentiment,
  Effect.gen(function* () {
    const bert = yield* Bert
    return Effect.fn("sentiment")(function* ({ TEXT }) {
      const input = Tensor.make("INT64", [TEXT.length], new BigInt64Array(TEXT.length))
      const { logits } = yield* bert.infer({ input_ids: input, attention_mask: input })
      const [negative = 0, positive = 0] = logits.data
      return positive > negative ? { CLASS: "positive", PROB: positive } : { CLASS: "negative", PROB: negative }
    })
  }),
)

/** The type of a layer lists the models that it still requires. */
export const layers = (sentiment: typeof SentimentLive) => {
  const needsBert: Layer.Layer<Sentiment, never, Bert> = sentiment
  // @ts-expect-error the inner model is not provided
  // @effect-diagnostics-next-line missingLayerContext:off
  const closed: Layer.Layer<Sentiment> = sentiment
  return { needsBert, closed }
}

class Tokenizer extends Context.Service<Tokenizer, { readonly most: number }>()("Tokenizer") {}

/** A handler may need the context of its request: no need of the layer, whose other needs stay. */
export const WithContext = Model.each(Sentiment, () =>
  Effect.gen(function* () {
    const { parameters } = yield* RequestContext
    const { most } = yield* Tokenizer
    return { CLASS: "positive", PROB: parameters["threshold"] === most ? 1 : 0 }
  }),
)

/** No request exists while a handler is built. */
export const BuiltWithContext = Model.each(
  Sentiment,
  Effect.map(
    RequestContext,
    ({ id }) =>
      () =>
        Effect.succeed({ CLASS: "positive", PROB: id.length }),
  ),
)

export const needs = (withContext: typeof WithContext, built: typeof BuiltWithContext) => {
  const needsTokenizer: Layer.Layer<Sentiment, never, Tokenizer> = withContext
  // @ts-expect-error RequestContext is not available to a layer
  // @effect-diagnostics-next-line missingLayerContext:off
  const closed: Layer.Layer<Sentiment> = built
  return { needsTokenizer, closed }
}

/** Literal types of labels are inferred for every form of handler. */
export const literals = [
  Model.each(Sentiment, () => ({ CLASS: "positive", PROB: 1 })),
  Model.each(Sentiment, ({ TEXT }) => ({ CLASS: TEXT === "" ? "negative" : "positive", PROB: 1 })),
  Model.each(Sentiment, ({ TEXT }) => {
    if (TEXT === "") return { CLASS: "negative", PROB: 1 }
    return { CLASS: "positive", PROB: 1 }
  }),
  Model.each(Sentiment, async ({ TEXT }) => ({ CLASS: TEXT === "" ? "negative" : "positive", PROB: 1 })),
  Model.each(Sentiment, () => Effect.succeed({ CLASS: "positive", PROB: 1 })),
  Model.each(
    Sentiment,
    Effect.map(
      Effect.void,
      () =>
        ({ TEXT }) =>
          TEXT === "" ? { CLASS: "negative", PROB: 1 } : { CLASS: "positive", PROB: 1 },
    ),
  ),
  Model.stream(Sentiment, function* () {
    yield { CLASS: "positive", PROB: 1 }
  }),
  Model.stream(Sentiment, () => [{ CLASS: "positive", PROB: 1 }]),
  Model.stream(Sentiment, () => Stream.make({ CLASS: "positive", PROB: 1 })),
]

// @ts-expect-error wrong output label
export const wrongPlainLabel = Model.each(Sentiment, ({ TEXT }) => ({
  CLASS: TEXT === "" ? "neutral" : "positive",
  PROB: 1,
}))

// @ts-expect-error missing output
export const missingPlainOutput = Model.each(Sentiment, () => ({ CLASS: "positive" }))

// @ts-expect-error wrong output label
export const wrongLabel = Model.each(Sentiment, () => Effect.succeed({ CLASS: "neutral", PROB: 1 }))

// @ts-expect-error missing output
export const missingOutput = Model.each(Sentiment, () => Effect.succeed({ CLASS: "negative" }))

// @ts-expect-error wrong output name
export const wrongOutput = Model.each(Sentiment, () => Effect.succeed({ class: "negative", PROB: 1 }))

// @ts-expect-error wrong fixed dim of an output
export const wrongOutputShape = Model.each(Bert, () =>
  Effect.succeed({ logits: Tensor.make("FP32", [3], Float32Array.of(1, 2, 3)) }),
)

export const BertLive = Model.batch(Bert, ({ input_ids }) => {
  const [rows, length] = input_ids.shape
  return Effect.succeed({ logits: Tensor.make("FP32", [rows, 2], new Float32Array(rows * 2).fill(length)) })
})

// @ts-expect-error a batched output has the batch dimension
export const wrongBatchRank = Model.batch(Bert, () =>
  Effect.succeed({ logits: Tensor.make("FP32", [2], Float32Array.of(1, 2)) }),
)

/** Requirements of `make` remain requirements of the layer, except for Scope, which the layer provides. */
export const scoped: Layer.Layer<Bert> = Model.batch(
  Bert,
  Effect.acquireRelease(
    Effect.succeed(({ input_ids }: Model.Batched<(typeof Bert)["definition"]["inputs"]>) =>
      Effect.succeed({ logits: Tensor.make("FP32", [input_ids.shape[0], 2], new Float32Array(2)) }),
    ),
    () => Effect.void,
  ) satisfies Effect.Effect<unknown, never, Scope.Scope>,
)

const bert = ({ input_ids }: Model.Batched<(typeof Bert)["definition"]["inputs"]>) => ({
  logits: Tensor.make("FP32", [input_ids.shape[0], 2], new Float32Array(2)),
})

/** A failed warm-up fails the model by default; its samples have the type of the model. */
export const warm: Layer.Layer<Bert, Model.WarmUpFailed> = Model.batch(Bert, bert, { warmUp: "zeros" })

export const warmAnyway: Layer.Layer<Bert> = Model.batch(Bert, bert, { warmUp: { onFailure: "ignore" } })

export const warmTwiceAnyway: Layer.Layer<Bert> = Model.batch(Bert, bert, {
  warmUp: [{ onFailure: "ignore" }, { inputs: "random", onFailure: "ignore" }],
})

export const warmTwice: Layer.Layer<Bert, Model.WarmUpFailed> = Model.batch(Bert, bert, {
  warmUp: [{ onFailure: "ignore" }, "random"],
})

// @ts-expect-error one of them may fail
// @effect-diagnostics-next-line missingLayerContext:off
export const silentTwice: Layer.Layer<Bert> = warmTwice

export const cold: Layer.Layer<Bert> = Model.batch(Bert, bert, { instances: 2 })

/** A layer that may fail instead of one that cannot. */
export const orUnavailable: Layer.Layer<Bert> = Model.orUnavailable(Bert, warm)

// @ts-expect-error it may fail
// @effect-diagnostics-next-line missingLayerContext:off
export const silent: Layer.Layer<Bert> = warm

export const sampled = Model.each(Sentiment, () => Effect.succeed({ CLASS: "negative", PROB: 1 }), {
  warmUp: { inputs: [{ TEXT: "a" }, { TEXT: "b", MAX: 2 }], count: 2 },
})

export const wrongSample = Model.each(Sentiment, () => Effect.succeed({ CLASS: "negative", PROB: 1 }), {
  // @ts-expect-error a sample of another model
  warmUp: { inputs: [{ TEXTS: "a" }] },
})

// @ts-expect-error an unknown option
export const misspelt = Model.batch(Bert, bert, { instance: 2 })

class Point extends Schema.Class<Point>("Point")({ x: Schema.Number, y: Schema.Number }) {}

/** Domain types compose. */
export class Locate extends Model.Service<Locate>()("locate", {
  inputs: { where: Tensor.json(Point) },
  outputs: { name: Tensor.utf8().check(Schema.isMinLength(1)) },
}) {}

class Translate extends Model.Service<Translate>()("translate", {
  inputs: {
    TEXT: Tensor.utf8(),
    LANGUAGE: Tensor.optional(Tensor.utf8(), { default: "en" }),
    WEIGHTS: Tensor.optional(Tensor.FP32(2), { default: 1 }),
    STYLE: Tensor.optional(Tensor.utf8()),
  },
  outputs: { TEXT: Tensor.utf8() },
  maxBatchSize: 4,
}) {}

/** Callers may omit an input with a default; handlers always receive it. */
export const Translated = Model.each(Translate, ({ TEXT, LANGUAGE, WEIGHTS, STYLE }) => {
  const language: string = LANGUAGE
  const weights: Float32Array = WEIGHTS.data
  // @ts-expect-error without a default it may be missing
  const style: string = STYLE
  return { TEXT: `${TEXT} ${language} ${weights} ${style}` }
})

export const TranslatedBatch = Model.batch(Translate, ({ LANGUAGE, STYLE }) => {
  const shape: readonly [number, 1] = LANGUAGE.shape
  // @ts-expect-error without a default it may be missing
  void STYLE.shape
  return { TEXT: Tensor.make("BYTES", shape, LANGUAGE.data) }
})

/** `value` and `extents` of a batch have the same types as in single samples. */
export const Common = Model.batch(Translate, ({ TEXT }, { value, extents }) => {
  const language: string = value("LANGUAGE")
  // @ts-expect-error without a default it may be missing
  const style: string = value("STYLE")
  // @ts-expect-error no such input
  void value("OTHER")
  // @ts-expect-error no input has such a dim
  void extents("sequence")
  void [language, style]
  return { TEXT }
})

export const translating = Effect.gen(function* () {
  const model = yield* Translate
  yield* model.infer({ TEXT: "hi" })
  yield* model.infer({ TEXT: "hi", LANGUAGE: "de", WEIGHTS: Tensor.make("FP32", [2], Float32Array.of(1, 2)) })
  yield* model.inferBatch({ TEXT: Tensor.make("BYTES", [1, 1], [new Uint8Array()]) })
  // @ts-expect-error a wrong type, although it may be left out
  yield* model.infer({ TEXT: "hi", LANGUAGE: 1 })
})

export const defaults = () => [
  // @ts-expect-error a default of another type
  Tensor.optional(Tensor.utf8(), { default: 1 }),
  // @ts-expect-error the default is not a label
  Tensor.optional(Tensor.labels(["a", "b"]), { default: "c" }),
  // @ts-expect-error the elements of INT64 are bigint
  Tensor.optional(Tensor.INT64(2), { default: 1 }),
  // @ts-expect-error another shape
  Tensor.optional(Tensor.FP32(2), { default: Tensor.make("FP32", [3], new Float32Array(3)) }),
  // @ts-expect-error another datatype
  Tensor.optional(Tensor.FP32(2), { default: Tensor.make("FP64", [2], new Float64Array(2)) }),
  // @ts-expect-error of a symbolic dim only the other inputs know the extent
  Tensor.optional(Tensor.FP32("n"), { default: Tensor.make("FP32", [2], new Float32Array(2)) }),
  // @ts-expect-error nothing tells how many elements there are
  Tensor.optional(Tensor.FP32(-1), { default: 1 }),
]

export const refused = () => {
  // @ts-expect-error a Schema that does not encode to a tensor is not a field
  class NoTensor extends Model.Service<NoTensor>()("no-tensor", { inputs: { x: Schema.String }, outputs: {} }) {}
  class Ragged extends Model.Service<Ragged>()("ragged", {
    inputs: {
      ids: Tensor.INT64("sequence"),
      picture: Tensor.optional(Tensor.UINT8("height", "width", 3)),
      text: Tensor.BYTES("words").check(Schema.makeFilter(() => true)),
      fixed: Tensor.FP32(2),
    },
    outputs: { pooled: Tensor.FP32("layers") },
    maxBatchSize: 4,
    batching: {
      ragged: {
        sequence: { buckets: [16], pad: { ids: 1n } },
        height: { pad: { picture: 255 } },
        words: { pad: { text: "" } },
      },
    },
  }) {}
  const { inputs } = Ragged.definition
  // @ts-expect-error a symbolic dim that no input has
  class NoDim extends Model.Service<NoDim>()("no-dim", { inputs, outputs: {}, batching: { ragged: { layers: {} } } }) {}
  class WrongPad extends Model.Service<WrongPad>()("wrong-pad", {
    inputs,
    outputs: {},
    // @ts-expect-error the elements of INT64 are bigint
    batching: { ragged: { sequence: { pad: { ids: 1 } } } },
  }) {}
  class WrongInput extends Model.Service<WrongInput>()("wrong-input", {
    inputs,
    outputs: {},
    // @ts-expect-error an input without this dim
    batching: { ragged: { sequence: { pad: { fixed: 1 } } } },
  }) {}
  class Grouped extends Model.Service<Grouped>()("grouped", {
    inputs,
    outputs: {},
    maxBatchSize: 4,
    batching: { groupBy: { inputs: ["fixed"], parameters: ["language"] } },
  }) {}
  class WrongKey extends Model.Service<WrongKey>()("wrong-key", {
    inputs,
    outputs: {},
    // @ts-expect-error an unknown input
    batching: { groupBy: { inputs: ["temperature"] } },
  }) {}
  const parameters = { language: Schema.optionalKey(Schema.String) }
  class ByDeclared extends Model.Service<ByDeclared>()("by-declared", {
    inputs,
    outputs: {},
    parameters,
    maxBatchSize: 4,
    batching: { groupBy: { parameters: ["language"] } },
  }) {}
  class ByOther extends Model.Service<ByOther>()("by-other", {
    inputs,
    outputs: {},
    parameters,
    maxBatchSize: 4,
    // @ts-expect-error a parameter that is not declared
    batching: { groupBy: { parameters: ["langauge"] } },
  }) {}
  // @ts-expect-error an unknown option
  class Misspelt extends Model.Service<Misspelt>()("misspelt", { inputs: {}, outputs: {}, maxBatch: 1 }) {}
  return [NoTensor, Misspelt, NoDim, WrongPad, WrongInput, Grouped, WrongKey, ByDeclared, ByOther]
}

it("refuses what a cast has smuggled past the types when the model is declared", () => {
  expect(refused).toThrow('Field "x" does not encode to a tensor')
})

it("refuses a name that no URL can have, or no line can show", () => {
  const named = (name: string) => () => Model.Service<Bert>()(name, { inputs: {}, outputs: {} })
  for (const name of ["", ".", "..", "a/b", "a\nb", "\0", "\ud800"]) {
    expect(named(name)).toThrow(
      `${JSON.stringify(name)} is not a valid model name: a name must be one segment of a URL path`,
    )
  }
  for (const name of ["...", "a.b", "all kinds", "модель", "100%", "a?b#c"]) expect(named(name)).not.toThrow()
})

it("derives each signature from its Schemas", () => {
  expect(Bert.definition.signature).toEqual({
    inputs: [
      { name: "input_ids", datatype: "INT64", dims: ["sequence"], optional: false, form: "tensor" },
      { name: "attention_mask", datatype: "INT64", dims: ["sequence"], optional: false, form: "tensor" },
    ],
    outputs: [{ name: "logits", datatype: "FP32", dims: [2], optional: false, form: "tensor" }],
  })
  expect(Sentiment.definition.signature.inputs[1]).toEqual({
    name: "MAX",
    datatype: "INT32",
    dims: [1],
    optional: true,
    form: "scalar",
  })
  expect(Sentiment.definition.signature.outputs[0]?.labels).toEqual(["negative", "positive"])
})

class Scaled extends Model.Service<Scaled>()("scaled", {
  inputs: { X: Tensor.FP32(2) },
  outputs: { Y: Tensor.FP32(2) },
  maxBatchSize: 4,
}) {}

export const rowsOfRequests: ReadonlyArray<Layer.Layer<Scaled>> = [
  Model.streamBatch(Scaled, ({ X }) => [{ Y: Tensor.map(X, (x) => x) }]),
  Model.streamBatch(Scaled, async function* ({ X }, { rows }) {
    for (let row = 0; row < rows; row++) yield { Y: X }
  }),
  Model.streamBatch(
    Scaled,
    Effect.map(
      Effect.void,
      () =>
        ({ X }) =>
          Stream.make({ Y: X }),
    ),
    { instances: 2 },
  ),
]

// @ts-expect-error a response without the rows
export const withoutRows = Model.streamBatch(Scaled, () => [{ Y: Tensor.make("FP32", [2], new Float32Array(2)) }])

// @ts-expect-error another datatype
export const otherDatatype = Model.streamBatch(Scaled, ({ X }) => [{ Y: Tensor.make("FP64", [1, 2], [...X.data]) }])

// @ts-expect-error a misspelt output
export const misspeltRows = Model.streamBatch(Scaled, ({ X }) => [{ y: X }])

// @ts-expect-error a single response that is no iterable
export const noIterable = Model.streamBatch(Scaled, ({ X }) => ({ Y: X }))

// @ts-expect-error streams have no cache
export const cachedStream = () => Model.streamBatch(Scaled, ({ X }) => [{ Y: X }], { responseCache: true })

// @ts-expect-error the rows are no sample
export const noSample = Model.streamBatch(Scaled, ({ X }) => [{ Y: X.shape satisfies readonly [2] }])

export const streamsOfRows = Effect.gen(function* () {
  const scaled = yield* Scaled
  const rows = Tensor.make("FP32", [2, 2], new Float32Array(4))
  const responses = scaled.streamBatch({ X: rows })
  const answers = scaled.withParameters.streamBatch({ X: rows }, { id: "7" })
  return [
    // @ts-expect-error a sample has no rows
    () => scaled.streamBatch({ X: Tensor.make("FP32", [2], new Float32Array(2)) }),
    // @ts-expect-error one request is never split
    () => scaled.streamBatch({ X: rows }, { concurrentChunks: 2 }),
    Stream.map(responses, ({ Y }) => Y.shape satisfies readonly [number, 2]),
    Stream.map(answers, ({ outputs: { Y } }) => Y.data satisfies Float32Array),
  ]
})
