/** The module that each thread of a script loads: its default export is the layer of that script's model. */
import { Effect, Layer, Stream } from "effect"
import { Unsupported } from "@nereid/core/Errors"
import type { NamedCalls } from "@nereid/core/internal/call/NamedCalls"
import { Worker } from "@nereid/worker"
import * as Declaration from "../config/Declaration.ts"
import * as Script from "./Script.ts"
import * as ScriptThreads from "./ScriptThreads.ts"

const refusal = (name: string) =>
  new Unsupported({ message: `model '${name}' cannot be called by a script in a worker thread` })

const refused = {
  infer: (name: string) => Effect.fail(refusal(name)),
  inferBatch: (name: string) => Effect.fail(refusal(name)),
  stream: (name: string) => Stream.fail(refusal(name)),
  streamBatch: (name: string) => Stream.fail(refusal(name)),
}

/** The models of the server are on its own thread. */
const models: NamedCalls = {
  ...refused,
  withParameters: refused,
  isReady: () => false,
}

export default Layer.unwrap(
  Effect.gen(function* () {
    const plan = ScriptThreads.planOf(yield* Worker.WorkerData)
    return yield* Script.layer(
      yield* Script.load(plan, plan.realPath),
      { plan, declared: Declaration.make(plan), models },
      {},
    )
  }),
)
