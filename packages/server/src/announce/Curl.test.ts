import { expect, it } from "@effect/vitest"
import { Model, Tensor } from "@nereid/core"
import { Effect } from "effect"
import { modelCurl } from "./Curl.ts"

const fields = { inputs: { X: Tensor.scalar("INT32") }, outputs: { Y: Tensor.scalar("INT32") } }
const sequence = { state: { SUM: Tensor.scalar("INT32") } }

class Sums extends Model.Service<Sums>()("sums", { ...fields, sequence }) {}
class Steps extends Model.Service<Steps>()("steps", { ...fields, sequence }) {}

it.effect("a request to a model with sequences is a whole sequence", () =>
  Effect.gen(function* () {
    const { model } = yield* Sums
    expect(modelCurl(model, "http://localhost")).toBe(
      `curl -s http://localhost/v2/models/sums/infer -d '{"parameters":{"sequence_id":1,"sequence_start":true,` +
        `"sequence_end":true},"inputs":[{"name":"X","shape":[1],"datatype":"INT32","data":[1]}]}'`,
    )
  }).pipe(
    Effect.provide(
      Model.sequence(Sums, ({ X }, { state: { SUM } }) => ({ outputs: { Y: X }, state: { SUM: SUM + X } })),
    ),
  ),
)

it.effect("a request to a model that streams sequences is a whole sequence, too", () =>
  Effect.gen(function* () {
    const { model } = yield* Steps
    expect(modelCurl(model, "http://localhost")).toBe(
      `curl -sN http://localhost/v2/models/steps/generate_stream -d '{"sequence_id":1,"sequence_start":true,` +
        `"sequence_end":true,"X":1}'`,
    )
  }).pipe(
    Effect.provide(
      Model.sequenceStream(Steps, function* ({ X }, { state }) {
        yield { outputs: { Y: X }, state }
      }),
    ),
  ),
)
