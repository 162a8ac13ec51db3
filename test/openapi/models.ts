/** The models of the server under test: in code, with parameters, errors, labels and streams, and in a repository. */
import { Model, Tensor } from "@nereid/core"
import { Repository } from "@nereid/repository"
import { Effect, Layer, Schema, Stream } from "effect"
import { echo, identity, io, one, step, tensors } from "../conformance/StoredParts.ts"
import { addSub } from "../fixtures/onnx.ts"
import { repository } from "../fixtures/repository.ts"

export class TooLong extends Schema.TaggedError<TooLong>()("TooLong", { limit: Schema.Int }) {
  override get message() {
    return `at most ${this.limit} characters`
  }
}

/** Characters of a text. */
const limit = 40

export class Rate extends Model.Service<Rate>()("rate", {
  inputs: { TEXT: Tensor.utf8(), WEIGHTS: Tensor.optional(Tensor.FP32(2), { default: 1 }) },
  outputs: { LABEL: Tensor.labels(["short", "long"]), SCORES: Tensor.FP32(2) },
  parameters: { factor: Schema.optionalKey(Schema.Number) },
  errors: [[TooLong, { http: 413 }]],
  maxBatchSize: 8,
}) {}

export class Letters extends Model.Service<Letters>()("letters", {
  inputs: { TEXT: Tensor.utf8() },
  outputs: { LETTER: Tensor.utf8() },
}) {}

const Person = Schema.Struct({ name: Schema.String, age: Schema.Int }).annotate({ identifier: "Person" })

export class Greet extends Model.Service<Greet>()("greet: you & me?", {
  inputs: { PERSON: Tensor.json(Person), PAIR: Tensor.INT64(2, 1) },
  outputs: { PERSON: Tensor.json(Person), PAIR: Tensor.INT64(2, 1) },
}) {}

export const models = [Rate, Letters, Greet] as const

export const routes = { "POST /rate": Rate, "POST /letters": Letters } as const

const inCode = Layer.mergeAll(
  Model.each(Rate, ({ TEXT, WEIGHTS }, { parameters: { factor = 1 } }) => {
    const { length } = TEXT
    if (length > limit) return Effect.fail(new TooLong({ limit }))
    const scores = WEIGHTS.data.map((weight) => Math.fround(Math.max(-1e6, Math.min(1e6, weight * factor))))
    return Effect.succeed({
      LABEL: length > limit / 2 ? "long" : "short",
      SCORES: Tensor.make(
        "FP32",
        [2],
        scores.map((score) => (Number.isNaN(score) ? 0 : score)),
      ),
    })
  }),
  Model.stream(Letters, ({ TEXT }) =>
    Stream.fromIterable([...TEXT].slice(0, 20)).pipe(Stream.map((LETTER) => ({ LETTER }))),
  ),
  Model.each(Greet, (sample) => Effect.succeed(sample)),
)

const stored = Layer.unwrap(
  Effect.map(repository, (fixture) => {
    fixture.write("add_sub/1/model.onnx", addSub("INT32", ["n", 2]))
    fixture.write("add_sub/config.pbtxt", `max_batch_size: 4 ${one}`)
    fixture.write("half/1/model.onnx", identity("FP16", [2]))
    fixture.write("half/config.pbtxt", one)
    fixture.write("open/1/model.onnx", identity("INT32", ["n", "k"]))
    fixture.write("open/config.pbtxt", one)
    fixture.write("script/1/model.js", echo)
    fixture.write("script/2/model.js", echo)
    const strings = "data_type: TYPE_STRING dims: -1"
    fixture.write("script/config.pbtxt", `version_policy { all {} } ${tensors(strings, strings)}`)
    fixture.write("both/1/.keep", "")
    const int32 = "data_type: TYPE_INT32 dims: 2"
    fixture.write(
      "both/config.pbtxt",
      `platform: "ensemble" max_batch_size: 4\n${io("input", "A", int32)}${io("input", "B", int32)}${io("output", "Y", int32)}` +
        `ensemble_scheduling { ${step("add_sub", { A: "A", B: "B" }, { SUM: "Y" })} }`,
    )
    fixture.adding("idle", 1, 1)
    const load = ["add_sub", "half", "open", "script", "both"]
    return Repository.layer({ directories: [fixture.path], control: "explicit", load })
  }),
)

export const layer = Layer.mergeAll(inCode, stored)
