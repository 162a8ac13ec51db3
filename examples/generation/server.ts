/** Writes stories by the network that training/ trains, run by ONNX Runtime in one worker thread. */
import * as NodeRuntime from "@effect/platform-node-shared/NodeRuntime"
import { Onnx } from "@nereid/onnx"
import { Server } from "@nereid/server"
import { Layer } from "effect"
import { Decoder, Writer } from "./contract.ts"
import * as Writing from "./Writing.ts"

export { Decoder, Writer }

export const DecoderLive = Onnx.layer(Decoder, {
  file: new URL("decoder.onnx", import.meta.url),
  state: { POSITION: "NEXT_POSITION", CACHE_0: "NEXT_CACHE_0", CACHE_1: "NEXT_CACHE_1" },
})

export const WriterLive = Layer.provide(Writing.layer, DecoderLive)

if (import.meta.main) {
  Server.layer([Writer, Decoder]).pipe(
    Layer.provide([WriterLive, DecoderLive]),
    Layer.launch,
    NodeRuntime.runMain({ teardown: Server.teardown }),
  )
}
