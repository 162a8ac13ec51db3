/**
 * Channel to one server that sends requests of numbered sessions again when their connection is lost: the server
 * executes such a request once. Passes on all others. ReplicatedCall.ts does the same for several replicas.
 */
import { constVoid } from "effect/Function"
import { Result } from "effect"
import type { Cancel } from "@nereid/core/internal/request/Request"
import * as SessionParameters from "@nereid/core/internal/request/SessionParameters"
import type { Channel } from "../channel/Channel.ts"
import { RetryBudget } from "./RetryBudget.ts"
import * as RetryRule from "./RetryRule.ts"
import * as Timers from "./Timers.ts"

/** Attempts of a request, the first one included. */
const attempts = 3

/** Of the client, as by default over replicas. */
const budgetSettings = { tokens: 100, ratio: 0.1 }

export const make = (channel: Channel, timers: Timers.Timers = Timers.system): Channel => {
  const budget = new RetryBudget(budgetSettings)
  return {
    ...channel,
    infer: (wire, timeoutMs, reply) => {
      if (!SessionParameters.isRepeatable(wire.parameters)) return channel.infer(wire, timeoutMs, reply)
      const startedAt = timers.now()
      let cancel: Cancel = constVoid
      const attempt = (count: number): void => {
        let isOver = false
        const passed = timers.now() - startedAt
        const sent = channel.infer(wire, timeoutMs === undefined ? undefined : timeoutMs - passed, (outcome, cause) => {
          isOver = true
          if (Result.isSuccess(outcome)) {
            budget.succeeded()
            return reply(outcome)
          }
          const isLost = cause === "lost" || cause === "unsent"
          if (!isLost || !budget.failed() || count >= attempts) return reply(outcome, cause)
          const pause = RetryRule.pause(outcome.failure, count, false, timers.random)
          if (timers.now() + pause - startedAt >= (timeoutMs ?? Infinity)) return reply(outcome, cause)
          cancel = timers.after(pause, () => attempt(count + 1))
        })
        // The channel may have replied already.
        if (!isOver) cancel = sent
      }
      attempt(1)
      return () => cancel()
    },
  }
}
