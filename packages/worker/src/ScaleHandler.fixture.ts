/** A handler of the requests of a batch, each by its own parameters. No test is in here. */
import { Errors, Model, Tensor } from "@nereid/core"
import { Result } from "effect"
import { Scale } from "./Command.fixture.ts"

export default Model.requests(Scale, (requests) =>
  requests.map(({ id, rows, inputs: { x }, parameters: { by }, setParameterUnsafe }) => {
    if (by === 0) return Result.fail(new Errors.InvalidRequest({ message: `${id}: by nothing` }))
    setParameterUnsafe("together", requests.length)
    const scaled = Tensor.make(
      "FP32",
      [rows, 1],
      Float32Array.from(x.data, (value) => value * by),
    )
    return Result.succeed({ y: scaled })
  }),
)
