/** The scenarios of sequences against this server: a repository with the model as an ONNX file, over real sockets. */
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { describe } from "vitest"
import type { Scenario } from "./Scenario.ts"
import { overStream, type Send, sizes, transports } from "./SequenceCalls.ts"
import { scenarios } from "./Scenarios.ts"
import { serve } from "./SequenceServer.ts"

const run = Effect.fnUntraced(function* (scenario: Scenario, send: Send) {
  const ports = yield* serve(scenario)
  const { steps, hold } = scenario
  const answers =
    hold === undefined
      ? yield* Effect.forEach(steps, (one) => Effect.promise(async () => (await send(ports, "m", [one]))[0]))
      : yield* Effect.promise(() => send(ports, "m", steps))
  expect(answers).toEqual(steps.map(({ expected }) => expected))
  // A batch is counted before its last response is read, but its slots may be freed after it.
  const counted = yield* Effect.promise(() => sizes(ports, "m"))
  expect(counted).toEqual(scenario.sizes)
})

for (const scenario of scenarios) {
  const { name, maxBatchSize, hold } = scenario
  describe(name, () => {
    const all: ReadonlyArray<readonly [string, Send]> =
      hold === undefined ? transports(maxBatchSize) : [["gRPC stream", overStream(maxBatchSize > 0)]]
    for (const [transport, send] of all) it.live(transport, () => run(scenario, send))
  })
}
