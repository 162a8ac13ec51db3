/** The scenarios of sequences against this server: a repository with the model, over real sockets. */
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { describe } from "vitest"
import type { Scenario, Step } from "./Scenario.ts"
import { metric, type ObservedPorts, type Send, sizes, transportsOf } from "./SequenceCalls.ts"
import { scenarios } from "./Scenarios.ts"
import { serve } from "./SequenceServer.ts"

const run = Effect.fnUntraced(function* (scenario: Scenario, send: Send<ObservedPorts>) {
  // Its stop waits for no open sequence.
  const ports = yield* serve(scenario, { server: { drainTimeout: "10 millis" } })
  const { steps, hold } = scenario
  const sendOne = Effect.fnUntraced(function* (one: Step) {
    if (one.afterExpiry === true) {
      const expired = metric(ports, "nereid_sequences_ended", 'reason="expired"')
      yield* Effect.repeat(expired, { until: (count) => (count ?? 0) > 0 })
    }
    const [answer] = yield* Effect.promise(() => send(ports, "m", [one]))
    return answer
  })
  const answers =
    hold === undefined ? yield* Effect.forEach(steps, sendOne) : yield* Effect.promise(() => send(ports, "m", steps))
  expect(answers).toEqual(steps.map(({ expected }) => expected))
  // A batch is counted before its last response is read, but its slots may be freed after it.
  const counted = yield* Effect.promise(() => sizes(ports, "m"))
  expect(counted).toEqual(scenario.sizes)
})

for (const scenario of scenarios) {
  describe(scenario.name, () => {
    for (const [transport, send] of transportsOf(scenario)) it.live(transport, () => run(scenario, send))
  })
}
