/** The network that train.ts trains, run by ONNX Runtime in one worker thread. */
import * as NodeRuntime from "@effect/platform-node-shared/NodeRuntime"
import { Onnx } from "@nereid/onnx"
import { Server } from "@nereid/server"
import { Layer } from "effect"
import { Digits } from "./contract.ts"

export { Digits }

export const DigitsLive = Onnx.layer(Digits, { file: new URL("digits.onnx", import.meta.url) })

if (import.meta.main) {
  Server.layer([Digits]).pipe(
    Layer.provide(DigitsLive),
    Layer.launch,
    NodeRuntime.runMain({ teardown: Server.teardown }),
  )
}
