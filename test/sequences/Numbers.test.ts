/** Requests with `sequence_number`: calls that overtake one another, and calls that are sent again. */
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { type Scenario, step } from "./Scenario.ts"
import { http, metric, transports } from "./SequenceCalls.ts"
import { serve } from "./SequenceServer.ts"

const accumulator: Scenario = { name: "m", behaviour: "state", maxBatchSize: 4, idle: 60_000_000, steps: [], sizes: {} }

for (const [transport, send] of transports(4)) {
  if (transport !== "gRPC stream") {
    it.live(`${transport}: calls in any order have the results of their order`, () =>
      Effect.gen(function* () {
        const ports = yield* serve(accumulator, { server: { drainTimeout: "10 millis" } })
        const steps = [5, 3, 4, 2, 1].map((number) =>
          step(7n, number === 1 ? "S" : number === 5 ? "E" : "", number, (number * (number + 1)) / 2, {
            number: BigInt(number),
          }),
        )
        const answers = yield* Effect.promise(() => send(ports, "m", steps))
        expect(answers).toEqual(steps.map(({ expected }) => expected))
      }),
    )
  }

  it.live(`${transport}: the last call is answered again without an execution`, () =>
    Effect.gen(function* () {
      const ports = yield* serve(accumulator, { server: { drainTimeout: "10 millis" } })
      const sendOne = (flags: "" | "S" | "E", input: number, number: bigint) =>
        Effect.promise(async () => (await send(ports, "m", [step(7n, flags, input, 0, { number })]))[0])
      expect(yield* sendOne("S", 1, 1n)).toBe(1)
      expect(yield* sendOne("", 2, 2n)).toBe(3)
      expect(yield* sendOne("", 2, 2n)).toBe(3)
      expect(yield* sendOne("S", 1, 1n)).toContain(
        "sequence_number 1 of sequence 7 of model 'm' was answered before, and only the last reply is kept: 3 is " +
          "expected next",
      )
      expect(yield* sendOne("", 9, 20n)).toContain("is too far ahead: 3 is expected next")
      expect(yield* sendOne("E", 3, 3n)).toBe(6)
      expect(yield* sendOne("E", 3, 3n)).toBe(6)
      expect(yield* metric(ports, "nv_inference_count")).toBe(3)
    }),
  )
}

it.live("a call that is sent again after a lost connection has the reply of the first one", () =>
  Effect.gen(function* () {
    // The first batch waits for two requests.
    const ports = yield* serve({ ...accumulator, hold: [2, 0] })
    const body = (number: number, flags: object) =>
      JSON.stringify({
        parameters: { sequence_id: 7, sequence_number: number, ...flags },
        inputs: [{ name: "INPUT", shape: [1, 1], datatype: "INT32", data: [number] }],
      })
    const leaving = new AbortController()
    const start = body(1, { sequence_start: true })
    const lost = fetch(`http://127.0.0.1:${ports.http}/v2/models/m/infer`, {
      method: "POST",
      body: start,
      signal: leaving.signal,
    }).catch(() => "lost")
    yield* Effect.repeat(metric(ports, "nv_inference_pending_request_count"), { until: (count) => count === 1 })
    leaving.abort()
    expect(yield* Effect.promise(() => lost)).toBe("lost")
    const calls = [start, body(2, { sequence_end: true })].map((text) => http(ports, "/v2/models/m/infer", text))
    const answers = yield* Effect.all(calls, { concurrency: "unbounded" })
    expect(answers.map(({ text }) => JSON.parse(text).outputs[0].data[0])).toEqual([1, 3])
    expect(yield* metric(ports, "nv_inference_count")).toBe(2)
  }),
)
