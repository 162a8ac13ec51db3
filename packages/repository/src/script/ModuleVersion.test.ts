/** Versions whose file exports a model in code. */
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { repository } from "../../../../test/fixtures/repository.ts"
import { open } from "../Repository.fixture.ts"

const source = `
import { Model, Tensor } from ${JSON.stringify(import.meta.resolve("@nereid/core"))}
export class Twice extends Model.Service()("twice", { inputs: { X: Tensor.FP32(4) }, outputs: { Y: Tensor.FP32(4) } }) {}
export const TwiceLive = Model.each(Twice, ({ X }) => ({ Y: X }))`

const config = (reshape: string) => `backend: "nereid"
  input { name: "X" data_type: TYPE_FP32 dims: 4 ${reshape} } output { name: "Y" data_type: TYPE_FP32 dims: 4 }`

it.live("its shapes are those of the code: a reshape is refused", () =>
  Effect.gen(function* () {
    const fixture = yield* repository
    fixture.write("twice/1/model.js", source)
    fixture.write("twice/config.pbtxt", config("reshape { shape: [ 2, 2 ] }"))
    const { index, load } = yield* open(fixture, { control: "explicit", load: ["twice"] })
    expect(index()[0]?.reason).toBe(
      `Invalid argument: reshape is not supported for ${fixture.path}/twice/1/model.js, which exports a model with its own shapes`,
    )
    fixture.write("twice/config.pbtxt", config(""))
    yield* load("twice")
    expect(index()[0]?.state).toBe("READY")
  }),
)
