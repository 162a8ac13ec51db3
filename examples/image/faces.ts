/**
 * Finds faces with a network that is not in this repository:
 *
 *   node examples/image/faces.ts <ultraface-rfb-320.onnx>
 */
import * as NodeRuntime from "@effect/platform-node-shared/NodeRuntime"
import { Model, Tensor } from "@nereid/core"
import { Pixels } from "@nereid/image"
import { Onnx } from "@nereid/onnx"
import { Server } from "@nereid/server"
import { Effect, Layer } from "effect"
import { type Box, surest } from "./Box.ts"
import { Faces, UltraFace } from "./contract.ts"

const size = { width: 320, height: 240 } as const

/** Normalization that the network was trained with. */
const normalization = { mean: 127, deviation: 128 }

const minScore = 0.7
const maxOverlap = 0.3

/** While one picture is with the network, the next one is decoded. */
const instances = 2

/** Needs UltraFace, wherever it runs. */
export const FacesLive = Model.each(
  Faces,
  Effect.gen(function* () {
    const ultraFace = yield* UltraFace
    return Effect.fnUntraced(function* ({ IMAGE }) {
      const pixels = Pixels.channelsFirst(yield* Pixels.colours(IMAGE, size), normalization)
      const { scores, boxes } = yield* ultraFace.infer({ input: Tensor.reshape(pixels, [1, 3, 240, 320]) })
      const faces = surest(proposals(scores.data, boxes.data), maxOverlap)
      return {
        BOXES: Tensor.make(
          "FP32",
          [faces.length, 4],
          Float32Array.from(faces.flatMap(({ left, top, right, bottom }) => [left, top, right, bottom])),
        ),
        SCORES: Tensor.make(
          "FP32",
          [faces.length],
          Float32Array.from(faces, ({ score }) => score),
        ),
      }
    })
  }),
  { instances },
)

const proposals = (scores: Float32Array, boxes: Float32Array): ReadonlyArray<Box> => {
  const found: Array<Box> = []
  for (let place = 0; place * 2 < scores.length; place++) {
    const score = scores[place * 2 + 1] ?? 0
    if (score < minScore) continue
    const [left = 0, top = 0, right = 0, bottom = 0] = boxes.subarray(place * 4, place * 4 + 4)
    found.push({ left, top, right, bottom, score })
  }
  return found
}

if (import.meta.main) {
  const [file] = process.argv.slice(2)
  if (file === undefined) throw new Error("usage: node examples/image/faces.ts <ultraface-rfb-320.onnx>")
  Server.layer([Faces, UltraFace]).pipe(
    Layer.provide(FacesLive),
    Layer.provide(Onnx.layer(UltraFace, { file })),
    Layer.launch,
    NodeRuntime.runMain({ teardown: Server.teardown }),
  )
}
