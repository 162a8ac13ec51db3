/** A reload while the version before it still executes: its live sequences are over for callers. */
import { afterEach, expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { blockedExecutions as executions, blockingSequences } from "../conformance/BlockedExecutions.ts"
import * as sequences from "../fixtures/sequences.ts"
import { type Flags, notStarted, step } from "./Scenario.ts"
import { http, type Ports, transports } from "./SequenceCalls.ts"
import { serveFiles } from "./SequenceServer.ts"

afterEach(() => executions.reset())

const running = (...names: ReadonlyArray<string>) =>
  Effect.repeat(
    Effect.sync(() => String(executions.running)),
    { until: (all) => all === String(names) },
  )

/** The reason of a lost sequence, which HTTP has in a header. */
const reason = (ports: Ports, id: number) => {
  const inputs = [{ name: "INPUT", shape: [1, 1], datatype: "INT32", data: [1] }]
  const body = JSON.stringify({ parameters: { sequence_id: id }, inputs })
  return Effect.map(http(ports, "/v2/models/m/infer", body), ({ headers }) => headers.get("nereid-error-detail"))
}

for (const [transport, send] of transports(4)) {
  it.live(`${transport}: sequences of a version that still executes are lost with the reason "reloaded"`, () =>
    Effect.gen(function* () {
      const ports = yield* serveFiles(
        {
          "m/config.pbtxt": sequences.config("oldest { max_candidate_sequences: 4 }", { idle: 60_000_000 }),
          "m/1/model.ts": blockingSequences("m"),
        },
        { repository: { control: "explicit", load: ["m"] }, server: { drainTimeout: "10 millis" } },
      )
      const call = (id: bigint, flags: Flags, input: number) =>
        Effect.forkChild(
          Effect.promise(async () => (await send(ports, "m", [step(id, flags, input, input)]))[0]),
          { startImmediately: true },
        )
      const idle = yield* call(2n, "S", 20)
      yield* running("m 2")
      executions.end()
      expect(yield* Fiber.join(idle)).toBe(20)
      const executing = yield* call(1n, "S", 10)
      yield* running("m 1")
      const { text } = yield* http(ports, "/v2/models/m/config")
      const shown: { readonly sequence_batching: object } = JSON.parse(text)
      const batching = { ...shown.sequence_batching, max_sequence_idle_microseconds: 50_000_000 }
      const config = JSON.stringify({ ...shown, sequence_batching: batching })
      const load = { parameters: { config } }
      expect((yield* http(ports, "/v2/repository/models/m/load", JSON.stringify(load))).status).toBe(200)
      for (const id of [1, 2]) {
        expect(yield* Fiber.join(yield* call(BigInt(id), "", 1))).toBe(notStarted(String(id)))
        expect(yield* reason(ports, id)).toBe('{"reason":"reloaded"}')
      }
      expect(executions.begun).toEqual(["m 2", "m 1"])
      // Another sequence has the id, whatever becomes of the first one.
      const next = yield* call(1n, "SE", 30)
      yield* running("m 1", "m 1")
      executions.end()
      executions.end()
      expect([yield* Fiber.join(executing), yield* Fiber.join(next)]).toEqual([10, 30])
      expect(yield* reason(ports, 1)).toBe('{"reason":"ended"}')
      expect(yield* reason(ports, 2)).toBe('{"reason":"reloaded"}')
    }),
  )
}
