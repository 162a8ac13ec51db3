/** The models of the attacks. */
import { Model, Tensor } from "@nereid/core"
import { Worker } from "@nereid/worker"
import { Effect } from "effect"
import { Command } from "../../packages/worker/src/Command.fixture.ts"
import type * as handler from "../../packages/worker/src/CommandHandler.fixture.ts"

export class Zeros extends Model.Service<Zeros>()("zeros", {
  inputs: { COUNT: Tensor.scalar("INT32") },
  outputs: { X: Tensor.UINT8("n") },
}) {}

export const ZerosLive = Model.each(Zeros, ({ COUNT }) =>
  Effect.succeed({ X: Tensor.make("UINT8", [COUNT], new Uint8Array(COUNT).fill(7)) }),
)

export class Slow extends Model.Service<Slow>()("slow", {
  inputs: { MILLISECONDS: Tensor.scalar("INT32") },
  outputs: { MILLISECONDS: Tensor.scalar("INT32") },
}) {}

export const SlowLive = Model.each(Slow, ({ MILLISECONDS }) =>
  Effect.delay(Effect.succeed({ MILLISECONDS }), MILLISECONDS),
)

/** A model with sequences: the sum of all values of a sequence. */
export class Sums extends Model.Service<Sums>()("sums", {
  inputs: { VALUE: Tensor.scalar("INT32") },
  outputs: { TOTAL: Tensor.scalar("INT32") },
  sequence: { state: { SUMS: Tensor.INT32(16) }, maxIdle: "10 minutes" },
}) {}

export const SumsLive = Model.sequence(Sums, ({ VALUE }, { state: { SUMS } }) => {
  const sum = (SUMS.data[0] ?? 0) + VALUE
  return { outputs: { TOTAL: sum }, state: { SUMS: Tensor.make("INT32", [16], new Int32Array(16).fill(sum)) } }
})

export { Command }

const module = new URL("../../packages/worker/src/CommandHandler.fixture.ts", import.meta.url)

export const CommandLive = Worker.layer<typeof handler>()(Command, module, { restart: { delay: "20 millis" } })
