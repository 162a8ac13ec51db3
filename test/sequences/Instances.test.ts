/** Instances that a load removes or adds while sequences have their slots, and others wait for one. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { type Flags, type Scenario, step } from "./Scenario.ts"
import { http, metric, type ObservedPorts, transports } from "./SequenceCalls.ts"
import { serve } from "./SequenceServer.ts"

/** Two instances with one slot each. */
const accumulator = (fields: string): Scenario => ({
  name: "m",
  behaviour: "state",
  fields,
  maxBatchSize: 1,
  instances: 2,
  idle: 60_000_000,
  steps: [],
  sizes: {},
})

const load = Effect.fnUntraced(function* (ports: ObservedPorts, count: number) {
  const { text } = yield* http(ports, "/v2/models/m/config")
  const shown: { readonly instance_group: ReadonlyArray<object> } = JSON.parse(text)
  const config = { ...shown, instance_group: shown.instance_group.map((group) => ({ ...group, count })) }
  const body = JSON.stringify({ parameters: { config: JSON.stringify(config) } })
  return (yield* http(ports, "/v2/repository/models/m/load", body)).status
})

const backlog = (ports: ObservedPorts, count: number) =>
  Effect.repeat(metric(ports, "nereid_sequences_backlog"), { until: (waiting) => waiting === count })

describe.each(["direct {}", "oldest { max_candidate_sequences: 1 }"])("%s", (fields) => {
  for (const [transport, send] of transports(1)) {
    const served = Effect.gen(function* () {
      const ports = yield* serve(accumulator(fields), {
        repository: { control: "explicit", load: ["m"] },
        server: { drainTimeout: "10 millis" },
      })
      const call = (id: bigint, flags: Flags, input: number) =>
        Effect.promise(async () => (await send(ports, "m", [step(id, flags, input, 0)]))[0])
      const fork = (id: bigint, flags: Flags, input: number) =>
        Effect.forkChild(call(id, flags, input), { startImmediately: true })
      // The first one is on the first instance.
      expect([yield* call(1n, "S", 1), yield* call(2n, "S", 10)]).toEqual([1, 10])
      const waiting = yield* fork(3n, "S", 100)
      yield* backlog(ports, 1)
      return { ports, call, fork, waiting }
    })

    // L1.5.instances-keep@all, L1.5.instances-removed@all, L1.5.instances-backlog@all
    it.live(`${transport}: a removed instance executes its sequences to their end, and takes none of the backlog`, () =>
      Effect.gen(function* () {
        const { ports, call, fork, waiting } = yield* served
        expect(yield* load(ports, 1)).toBe(200)
        expect(yield* metric(ports, "nereid_sequences_live")).toBe(2)
        expect([yield* call(1n, "", 2), yield* call(2n, "", 20)]).toEqual([3, 30])
        const other = yield* fork(4n, "SE", 1000)
        yield* backlog(ports, 2)
        expect(yield* call(2n, "E", 30)).toBe(60)
        expect(yield* metric(ports, "nereid_sequences_live")).toBe(1)
        expect(yield* metric(ports, "nereid_sequences_backlog")).toBe(2)
        expect(yield* call(1n, "E", 3)).toBe(6)
        expect(yield* Fiber.join(waiting)).toBe(100)
        yield* backlog(ports, 1)
        expect(yield* call(3n, "E", 200)).toBe(300)
        expect(yield* Fiber.join(other)).toBe(1000)
      }),
    )

    it.live(`${transport}: an added instance takes the backlog at once`, () =>
      Effect.gen(function* () {
        const { ports, call, waiting } = yield* served
        expect(yield* load(ports, 3)).toBe(200)
        expect(yield* Fiber.join(waiting)).toBe(100)
        const ends = [yield* call(1n, "E", 2), yield* call(2n, "E", 20), yield* call(3n, "E", 200)]
        expect(ends).toEqual([3, 30, 300])
      }),
    )
  }
})
