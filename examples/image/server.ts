/** Two models in code that decode pictures. The second one calls a third model, the network of ../digits. */
import * as NodeRuntime from "@effect/platform-node-shared/NodeRuntime"
import { Errors, Logits, Model, Tensor } from "@nereid/core"
import { Pixels } from "@nereid/image"
import { Server } from "@nereid/server"
import { Effect, Layer } from "effect"
import { Digits, DigitsLive } from "../digits/server.ts"
import { PhotographedDigit, Preprocess } from "./contract.ts"
import * as Figure from "./Figure.ts"
import * as Ink from "./Ink.ts"

export { PhotographedDigit, Preprocess }

const size = { width: 224, height: 224 } as const

export const PreprocessLive = Model.each(Preprocess, ({ IMAGE }) =>
  Effect.map(Pixels.colours(IMAGE, size), (pixels) => ({ PIXELS: Pixels.channelsLast(pixels) })),
)

/** Maximum length of a photograph's longer side, in pixels; enough for a pen's stroke on a page. */
const longest = 320

export const PhotographedDigitLive = Model.each(
  PhotographedDigit,
  Effect.gen(function* () {
    const digits = yield* Digits
    return Effect.fnUntraced(function* ({ IMAGE }) {
      const figure = Figure.find(Ink.of(yield* Pixels.greys(IMAGE, { longest })))
      if (figure === undefined) {
        return yield* new Errors.InvalidRequest({ message: "the picture shows nothing dark on lighter paper" })
      }
      const image = Tensor.make("FP32", [1, Figure.side, Figure.side], figure)
      const { logits } = yield* digits.infer({ image }) // shares the batches of everyone who asks it
      const probabilities = Logits.softmax(logits.data)
      const DIGIT = Logits.argmax(probabilities)
      return { DIGIT, PROBABILITY: probabilities[DIGIT] ?? 0 }
    })
  }),
).pipe(Layer.provide(DigitsLive))

if (import.meta.main) {
  Server.layer([Preprocess, PhotographedDigit]).pipe(
    Layer.provide([PreprocessLive, PhotographedDigitLive]),
    Layer.launch,
    NodeRuntime.runMain({ teardown: Server.teardown }),
  )
}
