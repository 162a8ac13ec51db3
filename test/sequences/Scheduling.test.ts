/** Delays, expiry, mixed streams, statistics and shared resources of sequences, over real sockets. */
import { expect, it } from "@effect/vitest"
import { RateLimit } from "@nereid/core"
import { Effect, Fiber } from "effect"
import * as sequences from "../fixtures/sequences.ts"
import { type Scenario, step, whole } from "./Scenario.ts"
import { http, metric, overStream, sizes, transports } from "./SequenceCalls.ts"
import { serve, serveFiles } from "./SequenceServer.ts"
import { statistics } from "./Statistics.ts"

const base: Scenario = { name: "m", behaviour: "flags", maxBatchSize: 4, idle: 60_000_000, steps: [], sizes: {} }

const delayed = (micros: number, utilization: number): Scenario => ({
  ...base,
  fields: `direct { max_queue_delay_microseconds: ${micros} minimum_slot_utilization: ${utilization} }`,
})

const minute = 60_000_000

for (const [transport, send] of transports(4)) {
  // L1.6.delay@all
  it.live(`${transport}: requests wait for others until enough slots have one`, () =>
    Effect.gen(function* () {
      const ports = yield* serve(delayed(minute, 0.5))
      const steps = [1n, 2n].map((id) => step(id, "SE", 1, 2))
      expect(yield* Effect.promise(() => send(ports, "m", steps))).toEqual([2, 2])
      expect(yield* Effect.promise(() => sizes(ports, "m"))).toEqual({ 2: 1 })
    }),
  )

  it.live(`${transport}: requests wait for others at most for the delay`, () =>
    Effect.gen(function* () {
      const ports = yield* serve(delayed(50_000, 1))
      const startedAt = performance.now()
      expect(yield* Effect.promise(() => send(ports, "m", [step(1n, "SE", 1, 2)]))).toEqual([2])
      expect(performance.now() - startedAt).toBeGreaterThanOrEqual(50)
      expect(yield* Effect.promise(() => sizes(ports, "m"))).toEqual({ 1: 1 })
    }),
  )

  // L1.6.delay-none@all
  it.live(`${transport}: requests do not wait without a slot utilization`, () =>
    Effect.gen(function* () {
      const ports = yield* serve(delayed(minute, 0))
      expect(yield* Effect.promise(() => send(ports, "m", [step(1n, "SE", 1, 2)]))).toEqual([2])
    }),
  )
}

// L1.7.order@stream
it.live("preserve_ordering: ten sequences on one stream have the order of their requests, in batches", () =>
  Effect.gen(function* () {
    const fields = "oldest { max_candidate_sequences: 10 preserve_ordering: true }"
    const ports = yield* serve({ ...base, behaviour: "state", fields, hold: [10, 0] })
    const ids = [1n, 2n, 3n, 4n, 5n, 6n, 7n, 8n, 9n, 10n]
    const flags = ["S", "", "E"] as const
    const steps = flags.flatMap((flag, round) => ids.map((id) => step(id, flag, Number(id), Number(id) * (round + 1))))
    const answers = yield* Effect.promise(() => overStream(true)(ports, "m", steps))
    expect(answers).toEqual(steps.map(({ expected }) => expected))
    const { inferences, executions } = yield* statistics(ports, "m")
    expect(inferences).toBe(30)
    expect(executions).toBeLessThan(inferences)
  }),
)

// L1.9.mix@stream, L1.9.order@stream
it.live("a stream may mix sequences; its responses have the order of its requests", () =>
  Effect.gen(function* () {
    const ports = yield* serve({ ...base, behaviour: "state", instances: 2, fields: "oldest {}" })
    const lengths = [3, 7, 5, 4, 6, 3]
    const steps = [0, 1, 2, 3, 4, 5, 6].flatMap((index) =>
      lengths.flatMap((length, sequence) => {
        if (index >= length) return []
        const [isStart, isEnd] = [index === 0, index === length - 1]
        const sum = 10 ** sequence * (index + 1)
        return [step(BigInt(sequence + 1), `${isStart ? "S" : ""}${isEnd ? "E" : ""}`, 10 ** sequence, sum)]
      }),
    )
    const answers = yield* Effect.promise(() => overStream(true)(ports, "m", steps))
    expect(answers).toEqual(steps.map(({ expected }) => expected))
  }),
)

for (const [transport, send] of transports(4)) {
  it.live(`${transport}: a request to an expired sequence must start it again`, () =>
    Effect.gen(function* () {
      const ports = yield* serve({ ...base, behaviour: "state", idle: 20_000 })
      const sendOne = (...args: Parameters<typeof step>) =>
        Effect.promise(async () => (await send(ports, "m", [step(...args)]))[0])
      expect(yield* sendOne(7n, "S", 1, 1)).toBe(1)
      yield* Effect.repeat(metric(ports, "nereid_sequences_ended", 'reason="expired"'), {
        until: (count) => count === 1,
      })
      const lost =
        "inference request for sequence 7 to model 'm' must specify the START flag on the first request of the sequence"
      expect(yield* sendOne(7n, "", 1, lost)).toBe(lost)
      expect(yield* sendOne(7n, "SE", 5, 5)).toBe(5)
    }),
  )
}

interface Statistics {
  readonly inference_count: number
  readonly execution_count: number
  readonly inference_stats: { readonly [part: string]: { readonly count: number; readonly ns: number } }
  readonly batch_stats: ReadonlyArray<{ readonly batch_size: number }>
}

// L1.8.counts@both, L1.8.sizes@both, L1.8.queue@HTTP
it.live("statistics count requests without empty rows, and the time in slots and backlog as queue time", () =>
  Effect.gen(function* () {
    const ports = yield* serve({ ...base, hold: [4, 3] })
    const steps = [...whole(1n, [1]), ...whole(2n, [1, 2]), ...whole(3n, [1]), ...whole(4n, [1])]
    const waiting = whole(5n, [1, 2, 3])
    const answers = yield* Effect.promise(() => overStream(true)(ports, "m", [...steps, ...waiting]))
    expect(answers).toEqual([2, 2, 2, 2, 2, 2, 2, 3])
    const { text } = yield* http(ports, "/v2/models/m/stats")
    const parsed: { readonly model_stats: ReadonlyArray<Statistics> } = JSON.parse(text)
    const [stats] = parsed.model_stats
    // The fifth sequence has the first free slot; the second one ends in its own.
    expect(stats).toMatchObject({
      inference_count: 8,
      execution_count: 4,
      inference_stats: { success: { count: 8 }, queue: { count: 8 }, fail: { count: 0 } },
    })
    expect(stats?.inference_stats["queue"]?.ns).toBeGreaterThan(0)
    const expected = { inferences: 8, executions: 4, sizes: { 1: 2, 2: 1, 4: 1 } }
    expect(yield* statistics(ports, "m")).toEqual(expected)
  }),
)

// L1.8.failures@HTTP
it.live("failures are counted by their reason, and those before the queue are not", () =>
  Effect.gen(function* () {
    const failing = `
      import { ModelScript } from "@nereid/repository"
      export default ModelScript.define({
        execute: (requests) => requests.map(({ inputs: { INPUT } }) =>
          INPUT.data[0] < 0 ? new Error("negative") : { OUTPUT: INPUT }),
      })`
    const ports = yield* serveFiles({
      "m/config.pbtxt": sequences.config("oldest { max_candidate_sequences: 1 }"),
      "m/1/model.ts": failing,
    })
    const reasons = () =>
      Effect.forEach(["REJECTED", "CANCELED", "BACKEND", "OTHER"], (reason) =>
        metric(ports, "nv_inference_request_failure", `reason="${reason}"`),
      )
    expect(yield* reasons()).toEqual([0, 0, 0, 0])
    const send = (...args: Parameters<typeof step>) =>
      Effect.promise(() => overStream(true)(ports, "m", [step(...args)]))
    expect(yield* send(1n, "S", -1, "negative")).toEqual([expect.stringContaining("negative")])
    yield* send(2n, "S", 1, "timeout", { timeout: 10_000n })
    yield* send(3n, "", 1, "not started")
    expect(yield* reasons()).toEqual([1, 0, 1, 0])
    // A failed request leaves its sequence as it is.
    expect(yield* send(1n, "E", 5, 5)).toEqual([5])
  }),
)

it.live("a START beyond the slots and the backlog is refused at once, with the time until a retry", () =>
  Effect.gen(function* () {
    const limit = 'parameters { key: "max_sequence_backlog" value { string_value: "1" } }'
    const ports = yield* serveFiles({
      "m/config.pbtxt": sequences.config(`oldest { max_candidate_sequences: 1 } ${sequences.state()}`) + limit,
      "m/1/model.onnx": sequences.accumulator(true),
    })
    const call = (id: number, flags: object) =>
      http(
        ports,
        "/v2/models/m/infer",
        JSON.stringify({
          parameters: { sequence_id: id, ...flags },
          inputs: [{ name: "INPUT", shape: [1, 1], datatype: "INT32", data: [1] }],
        }),
      )
    expect((yield* call(1, { sequence_start: true })).status).toBe(200)
    const waiting = yield* Effect.forkChild(call(2, { sequence_start: true, sequence_end: true }))
    yield* Effect.repeat(metric(ports, "nereid_sequences_backlog"), { until: (count) => count === 1 })
    const refused = yield* call(3, { sequence_start: true })
    expect(refused.status).toBe(503)
    expect(refused.headers.get("retry-after")).toMatch(/^[0-9]+$/)
    expect(refused.headers.get("nereid-error")).toBe("QueueFull")
    expect(JSON.parse(refused.text).error).toContain(
      "Exceeds maximum queue size: the backlog of sequences of model 'm' has reached its limit of 1. Retry once",
    )
    // Sequences that have begun go on.
    expect((yield* call(1, { sequence_end: true })).status).toBe(200)
    expect((yield* Fiber.join(waiting)).status).toBe(200)
    expect((yield* call(3, { sequence_start: true, sequence_end: true })).status).toBe(200)
  }),
)

// L4.instance@stream
it.live("sequences keep their instances under a rate limiter, which only delays them", () =>
  Effect.gen(function* () {
    const group = (count: number, resources: string) =>
      `instance_group { count: ${count} kind: KIND_CPU rate_limiter { ${resources} } }`
    const groups =
      group(2, `resources { name: "one" count: 4 }`) +
      group(1, `resources { name: "one" count: 2 } priority: 2`) +
      group(1, `resources { name: "all" global: true count: 1 }`)
    const config = sequences.config(sequences.state(), { maxBatchSize: 1 })
    const ports = yield* serveFiles({
      "m/config.pbtxt": config.replace("instance_group { count: 1 kind: KIND_CPU }", groups),
      "m/1/model.onnx": sequences.accumulator(true),
    }).pipe(Effect.provide(RateLimit.layer()))
    const inputs = [1, 2, 3, 4, 5, 6, 7, 8, 9]
    const steps = [1n, 2n, 3n, 4n].flatMap((id) => whole(id, inputs))
    const answers = yield* Effect.promise(() => overStream(true)(ports, "m", steps))
    const sums = inputs.map((input) => (input * (input + 1)) / 2)
    expect(answers).toEqual([...sums, ...sums, ...sums, ...sums])
    expect(yield* Effect.promise(() => sizes(ports, "m"))).toEqual({ 1: 36 })
  }),
)
