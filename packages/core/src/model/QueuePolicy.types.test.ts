/** The promise of the queue's options: what must not compile. `tsc` checks each `@ts-expect-error`. */
import { expect, it } from "@effect/vitest"
import * as Model from "../Model.ts"
import * as Tensor from "../Tensor.ts"

const fields = { inputs: { X: Tensor.FP32(1) }, outputs: { X: Tensor.FP32(1) }, maxBatchSize: 8 }

const declare = (batching: Model.BatchingOptions<typeof fields.inputs>) =>
  Model.Service<unknown>()("m", { ...fields, batching })

export const declarations = () => [
  declare({ maxQueueSize: 10, defaultTimeout: "50 millis", timeoutAction: "DELAY", allowTimeoutOverride: true }),
  declare({ priorities: { levels: 3, default: 2, policies: { 1: { timeoutAction: "REJECT" } } } }),
  declare({ preserveOrdering: true, maxQueueSize: 10, defaultTimeout: "1 second", timeoutAction: "REJECT" }),
  declare({ preserveOrdering: Math.random() > 2, maxQueueSize: 10 }),

  // @ts-expect-error no such action
  declare({ timeoutAction: "DEFER" }),
  // @ts-expect-error no duration
  declare({ defaultTimeout: "50" }),
  // @ts-expect-error no such option
  declare({ priorityLevels: 3 }),
  // @ts-expect-error levels have a default
  declare({ priorities: { levels: 3 } }),
  // @ts-expect-error a level is a number
  declare({ priorities: { levels: 3, default: 2, policies: { high: { maxQueueSize: 10 } } } }),
  // @ts-expect-error the policy of a level has no levels
  declare({ priorities: { levels: 3, default: 2, policies: { 1: { priorities: { levels: 2, default: 1 } } } } }),
  // @ts-expect-error no such option of a level
  declare({ priorities: { levels: 3, default: 2, policies: { 1: { maxQueueDelay: 1 } } } }),
  // @ts-expect-error what goes first cannot be answered in the order in which it came
  declare({ preserveOrdering: true, priorities: { levels: 3, default: 2 } }),
  // @ts-expect-error nor can what goes behind others
  declare({ preserveOrdering: true, timeoutAction: "DELAY" }),
]

it("loads", () => {
  expect(declarations).toBeTypeOf("function")
})
