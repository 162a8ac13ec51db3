/** A model whose state is the sum of its inputs. */
import { Effect } from "effect"
import { Model, Tensor } from "@nereid/core"

export class Sums extends Model.Service<Sums>()("sums", {
  inputs: { VALUE: Tensor.scalar("FP32") },
  outputs: { TOTAL: Tensor.scalar("FP32") },
  maxBatchSize: 32,
  sequence: { state: { SUM: Tensor.scalar("FP32") }, maxIdle: "30 seconds", maxIdleLimit: "1 minute" },
}) {}

/** Executions of this process. */
export const executions = { count: 0 }

export const SumsLive = Model.sequence(Sums, ({ VALUE }, { state: { SUM } }) => {
  executions.count += 1
  const sum = SUM + VALUE
  // A model whose requests take a while, for requests that are under way.
  const outcome = { outputs: { TOTAL: sum }, state: { SUM: sum } }
  return VALUE === 0.5 ? Effect.delay(Effect.succeed(outcome), "200 millis") : outcome
})
