/** The model in code: one call sees the rows of all requests that share its batch. */
import * as NodeRuntime from "@effect/platform-node-shared/NodeRuntime"
import { Model, Tensor } from "@nereid/core"
import { Server } from "@nereid/server"
import { Effect, Layer } from "effect"
import { AddSub } from "./contract.ts"

export { AddSub }

export const AddSubLive = Model.batch(AddSub, ({ INPUT0, INPUT1 }) => {
  const sum = new Float32Array(INPUT0.data.length)
  const difference = new Float32Array(INPUT0.data.length)
  for (let index = 0; index < sum.length; index++) {
    const one = INPUT0.data[index] ?? 0
    const other = INPUT1.data[index] ?? 0
    sum[index] = one + other
    difference[index] = one - other
  }
  return Effect.succeed({
    OUTPUT0: Tensor.make("FP32", INPUT0.shape, sum),
    OUTPUT1: Tensor.make("FP32", INPUT0.shape, difference),
  })
})

if (import.meta.main) {
  Server.layer([AddSub]).pipe(
    Layer.provide(AddSubLive),
    Layer.launch,
    NodeRuntime.runMain({ teardown: Server.teardown }),
  )
}
