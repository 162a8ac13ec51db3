/** Callers that leave: what ends with their request, and how it is counted. Executions wait until enough is queued. */
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Scenario } from "./Scenario.ts"
import { metric, type Ports } from "./SequenceCalls.ts"
import * as SequenceServer from "./SequenceServer.ts"

const accumulator: Scenario = { name: "m", behaviour: "state", maxBatchSize: 1, idle: 60_000_000, steps: [], sizes: {} }

/** Its stop waits for no open sequence. */
const serve = (scenario: Scenario) => SequenceServer.serve(scenario, { server: { drainTimeout: "10 millis" } })

/** Waits until so many requests are pending. */
const pending = (ports: { readonly metrics: number }, requests: number) =>
  Effect.repeat(metric(ports, "nv_inference_pending_request_count"), { until: (count) => count === requests })

const canceled = (ports: { readonly metrics: number }) =>
  metric(ports, "nv_inference_request_failure", 'reason="CANCELED"')

/** A call whose caller may leave. `answer` is OUTPUT, the status of an error, or "left". */
const call = (ports: Ports, id: number, flags: "" | "S" | "E" | "SE", input: number) => {
  const leaving = new AbortController()
  const answer = fetch(`http://127.0.0.1:${ports.http}/v2/models/m/infer`, {
    method: "POST",
    body: JSON.stringify({
      parameters: { sequence_id: id, sequence_start: flags.includes("S"), sequence_end: flags.includes("E") },
      inputs: [{ name: "INPUT", shape: [1, 1], datatype: "INT32", data: [input] }],
    }),
    signal: leaving.signal,
  }).then(
    async (response) => {
      const { outputs }: { readonly outputs?: ReadonlyArray<{ readonly data: [number] }> } = JSON.parse(
        await response.text(),
      )
      return outputs?.[0]?.data[0] ?? `status ${response.status}`
    },
    () => "left",
  )
  return { answer, leave: () => leaving.abort() }
}

/** Sends calls one after the other: each is queued before the next one. */
const queue = Effect.fnUntraced(function* (
  ports: Ports & { readonly metrics: number },
  before: number,
  calls: ReadonlyArray<readonly [id: number, flags: "" | "S" | "E" | "SE", input: number]>,
) {
  const sent: Array<ReturnType<typeof call>> = []
  for (const [id, flags, input] of calls) {
    sent.push(call(ports, id, flags, input))
    yield* pending(ports, before + sent.length)
  }
  return sent
})

const answers = (calls: ReadonlyArray<{ readonly answer: Promise<number | string> }>) =>
  Effect.promise(() => Promise.all(calls.map(({ answer }) => answer)))

// L1.5.cancel-direct@HTTP, L1.8.pending@HTTP
it.live("direct: a request in a slot leaves with those behind it; earlier ones are executed", () =>
  Effect.gen(function* () {
    const ports = yield* serve({ ...accumulator, hold: [4, 0] })
    const sent = yield* queue(ports, 0, [
      [1, "S", 1],
      [1, "", 2],
      [1, "E", 3],
    ])
    sent[1]?.leave()
    yield* pending(ports, 1)
    expect(yield* canceled(ports)).toBe(2)
    // The sequence is over, and its id free for the next one, which waits for its slot.
    const next = yield* queue(ports, 1, [
      [2, "S", 10],
      [2, "", 20],
    ])
    expect(yield* metric(ports, "nereid_sequences_backlog")).toBe(1)
    expect(yield* answers(sent.slice(1))).toEqual(["left", "status 400"])
    for (const one of [...sent, ...next]) one.leave()
    yield* pending(ports, 0)
  }),
)

it.live("backlog: a request leaves with its whole sequence at once", () =>
  Effect.gen(function* () {
    const ports = yield* serve({ ...accumulator, hold: [2, 0] })
    const [first] = yield* queue(ports, 0, [[1, "S", 1]])
    const waiting = yield* queue(ports, 1, [
      [2, "S", 1],
      [2, "", 2],
      [2, "E", 3],
    ])
    waiting[1]?.leave()
    yield* pending(ports, 1)
    expect(yield* canceled(ports)).toBe(3)
    expect(yield* metric(ports, "nereid_sequences_ended", 'reason="cancelled"')).toBe(1)
    const second = call(ports, 1, "E", 2)
    expect(yield* answers([...(first === undefined ? [] : [first]), second])).toEqual([1, 3])
  }),
)

it.live("oldest: a request that may be executed leaves alone, and its sequence goes on", () =>
  Effect.gen(function* () {
    const ports = yield* serve({ ...accumulator, fields: "oldest { max_candidate_sequences: 1 }", hold: [2, 0] })
    const [first] = yield* queue(ports, 0, [[1, "S", 1]])
    first?.leave()
    yield* pending(ports, 0)
    expect(yield* canceled(ports)).toBe(1)
    expect(yield* metric(ports, "nereid_sequences_live")).toBe(1)
    const others = [call(ports, 1, "", 20), call(ports, 1, "", 20)]
    expect((yield* answers(others)).toSorted()).toEqual([20, 40])
    expect(yield* answers([call(ports, 1, "E", 2)])).toEqual([42])
  }),
)
