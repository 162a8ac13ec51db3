/** Two models in code over one way to read pictures; the second one asks a third, the network of ../digits. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Errors, Logits, Model, Tensor } from "@nereid/core"
import { Server } from "@nereid/server"
import { Effect, Layer } from "effect"
import { Digits, DigitsLive } from "../digits/server.ts"
import { PhotographedDigit, Preprocess } from "./contract.ts"
import * as Figure from "./Figure.ts"
import * as Ink from "./Ink.ts"
import * as Picture from "./Picture.ts"

export { PhotographedDigit, Preprocess }

const width = 224
const height = 224

export const PreprocessLive = Model.each(
  Preprocess,
  Effect.fnUntraced(function* ({ IMAGE }) {
    const { data } = yield* Picture.colours(IMAGE, width, height)
    const pixels = new Float32Array(data.length)
    for (let index = 0; index < data.length; index++) pixels[index] = (data[index] ?? 0) / 127.5 - 1
    return { PIXELS: Tensor.make("FP32", [width, height, 3], pixels) }
  }),
)

/** Of a photograph's longer side: enough to see a pen's stroke on a page. */
const longest = 320

export const PhotographedDigitLive = Model.each(
  PhotographedDigit,
  Effect.gen(function* () {
    const digits = yield* Digits
    return Effect.fnUntraced(function* ({ IMAGE }) {
      const figure = Figure.find(Ink.of(yield* Picture.greys(IMAGE, longest)))
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
