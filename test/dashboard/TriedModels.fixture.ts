/** Models that the tests of the form call: one for each kind of input, output and error. */
import { Errors, Model, Tensor } from "@nereid/core"
import { Server } from "@nereid/server"
import { Effect, Layer, Schema, Stream } from "effect"

class TooLong extends Schema.TaggedError<TooLong>()("TooLong", { limit: Schema.Int, text: Schema.String }) {}

/** The texts that a page must show as text. */
export const hostile = {
  markup: '<img src=x onerror="document.title=1"><script>document.title=2</script>',
  direction: "abc\u202etxt.exe\u202c \u05e9\u05dc\u05d5\u05dd",
  controls: "nul\u0000 bell\u0007 escape\u001b[31m delete\u007f",
} as const

/** Answers with a hostile text as output, label, JSON and error. */
export class Hostile extends Model.Service<Hostile>()("hostile", {
  inputs: { KIND: Tensor.labels(["markup", "direction", "controls", "<b>error</b>"]) },
  outputs: {
    TEXT: Tensor.utf8(),
    DATA: Tensor.json(Schema.Record(Schema.String, Schema.String)),
    CLASS: Tensor.labels(["<img src=x onerror=alert(1)>", "other"]),
  },
}) {}

class Node extends Schema.Class<Node>("Node")({ name: Schema.String }) {}

/** A JSON input of many kinds, answered as text. */
export class Order extends Model.Service<Order>()("order", {
  inputs: {
    ORDER: Tensor.json(
      Schema.Struct({
        customer: Schema.String,
        amount: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 10 })),
        express: Schema.Boolean,
        size: Schema.Literals(["small", "large"]),
        note: Schema.optionalKey(Schema.String),
        tags: Schema.Array(Schema.String),
        pay: Schema.Union([
          Schema.Struct({ kind: Schema.Literal("card"), number: Schema.String }),
          Schema.Struct({ kind: Schema.Literal("cash") }),
        ]),
        parent: Schema.optionalKey(Node),
      }),
    ),
  },
  outputs: { ECHO: Tensor.json(Schema.Json) },
}) {}

/** Scalars, a label, a switch and an optional text; parameters. */
export class Options extends Model.Service<Options>()("options", {
  inputs: {
    COLOUR: Tensor.labels(["red", "green", "blue"]),
    LARGE: Tensor.scalar("INT64"),
    SMALL: Tensor.scalar("UINT8"),
    ON: Tensor.scalar("BOOL"),
    NOTE: Tensor.optional(Tensor.utf8()),
  },
  outputs: { TEXT: Tensor.utf8(), LARGE: Tensor.scalar("INT64") },
  parameters: {
    temperature: Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 2 })),
    seed: Schema.optionalKey(Schema.BigInt),
  },
}) {}

/** Tensors with a variable dim, twice each. */
export class Twice extends Model.Service<Twice>()("twice", {
  inputs: { x: Tensor.FP32("n", 3), y: Tensor.optional(Tensor.FP16("n")) },
  outputs: { doubled: Tensor.FP32("n", 3), halves: Tensor.FP16("n") },
  maxBatchSize: 8,
}) {}

/** A colour picture, as it came. */
export class Colours extends Model.Service<Colours>()("colours", {
  inputs: { pixels: Tensor.UINT8("h", "w", 3) },
  outputs: { pixels: Tensor.UINT8("h", "w", 3), mean: Tensor.FP32(3) },
}) {}

/** The bytes as they came. */
export class Mirror extends Model.Service<Mirror>()("mirror", {
  inputs: { DATA: Tensor.BYTES(1) },
  outputs: { DATA: Tensor.BYTES(1) },
}) {}

export class Strict extends Model.Service<Strict>()("strict", {
  inputs: { TEXT: Tensor.utf8() },
  outputs: { LENGTH: Tensor.scalar("INT32") },
  errors: [[TooLong, { http: 422, grpc: "INVALID_ARGUMENT" }]],
}) {}

/** Counts to a number, then fails. */
export class Countdown extends Model.Service<Countdown>()("countdown", {
  inputs: { FROM: Tensor.scalar("INT32") },
  outputs: { N: Tensor.scalar("INT32") },
}) {}

/** Streams numbers of 16 bits. */
export class Halves extends Model.Service<Halves>()("halves", {
  inputs: { x: Tensor.scalar("INT32") },
  outputs: { half: Tensor.BF16(1) },
}) {}

export const tried = [Hostile, Order, Options, Twice, Colours, Mirror, Strict, Countdown, Halves] as const

export const triedLive = Layer.mergeAll(
  Model.each(Hostile, ({ KIND }) => {
    if (KIND === "<b>error</b>") return Effect.fail(new Errors.InvalidRequest({ message: hostile.markup }))
    const { [KIND]: text } = hostile
    return Effect.succeed({ TEXT: text, DATA: { [text]: text }, CLASS: "<img src=x onerror=alert(1)>" as const })
  }),
  Model.each(Order, ({ ORDER }) => ({ ECHO: JSON.parse(JSON.stringify(ORDER)) as Schema.Json })),
  Model.each(Options, ({ COLOUR, LARGE, SMALL, ON, NOTE }, { parameters: { temperature, seed } }) => ({
    TEXT: [COLOUR, SMALL, ON, NOTE ?? "no note", temperature, seed ?? "no seed"].join(" "),
    LARGE,
  })),
  Model.each(Twice, ({ x, y }) => ({
    doubled: Tensor.map(x, (value) => 2 * value),
    halves:
      y ??
      Tensor.make(
        "FP16",
        [x.shape[0]],
        Float16Array.from({ length: x.shape[0] }, (_, n) => n / 2),
      ),
  })),
  Model.each(Colours, ({ pixels }) => {
    const sums = [0, 0, 0]
    for (const [index, value] of pixels.data.entries()) sums[index % 3] = (sums[index % 3] ?? 0) + value
    const mean = Float32Array.from(sums, (sum) => (3 * sum) / pixels.data.length)
    return { pixels, mean: Tensor.make("FP32", [3], mean) }
  }),
  Model.each(Mirror, ({ DATA }) => ({ DATA })),
  Model.each(Strict, ({ TEXT }) =>
    TEXT.length > 5 ? Effect.fail(new TooLong({ limit: 5, text: TEXT })) : Effect.succeed({ LENGTH: TEXT.length }),
  ),
  Model.stream(Halves, () => Stream.empty),
  Model.stream(Countdown, ({ FROM }) =>
    Stream.range(1, FROM).pipe(
      Stream.rechunk(1),
      Stream.map((N) => ({ N })),
      Stream.concat(Stream.fail(new Errors.ExecutionFailed({ message: "the end" }))),
    ),
  ),
)

export const startTried = () =>
  Server.start(tried, triedLive, {
    http: { host: "127.0.0.1", port: 0 },
    grpc: false,
    metrics: false,
    dashboard: true,
  })
