/** Sequences and the life of their model and server: stops, reloads, changed instances, cancelled callers, metrics. */
import { expect, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Logger, Scope } from "effect"
import { type Scenario, step } from "./Scenario.ts"
import { http, metric, type Ports, transports } from "./SequenceCalls.ts"
import { serve } from "./SequenceServer.ts"

const accumulator: Scenario = {
  name: "m",
  behaviour: "state",
  maxBatchSize: 4,
  idle: 60_000_000,
  steps: [],
  sizes: {},
}

const oneSlot: Scenario = { ...accumulator, fields: "oldest { max_candidate_sequences: 1 }" }

const lost = (id: string) =>
  `inference request for sequence ${id} to model 'm' must specify the START flag on the first request of the sequence`

// A11.sequence@both
for (const [transport, send] of transports(4)) {
  const sendOne = (ports: Ports, ...args: Parameters<typeof step>) =>
    Effect.promise(async () => (await send(ports, "m", [step(...args)]))[0])

  // L1.5.stop-start@all, L1.5.stop-continue@all, L1.5.stop-log@all, L1.4.stopping@all
  it.live(`${transport}: a stop lets open sequences end, and refuses new ones`, () =>
    Effect.gen(function* () {
      const logged: Array<unknown> = []
      const logger = Logger.make(({ message }) => void logged.push([message].flat().join(" ")))
      const scope = yield* Scope.make()
      const ports = yield* Scope.provide(serve(accumulator), scope).pipe(Effect.provide(Logger.layer([logger])))
      expect(yield* sendOne(ports, 7n, "S", 1, 1)).toBe(1)
      expect(yield* sendOne(ports, 19n, "S", 1, 1)).toBe(1)
      const stopped = yield* Effect.forkChild(Scope.close(scope, Exit.void), { startImmediately: true })
      yield* Effect.repeat(http(ports, "/v2/health/ready"), { until: ({ status }) => status !== 200 })
      const refused = "Server is stopping, scheduler for model has stopped accepting new inference requests"
      expect(yield* sendOne(ports, 8n, "S", 1, 1)).toBe(refused)
      expect(yield* sendOne(ports, 7n, "", 2, 3)).toBe(3)
      expect(yield* sendOne(ports, 7n, "E", 3, 6)).toBe(6)
      expect(yield* sendOne(ports, 19n, "E", 3, 4)).toBe(4)
      yield* Fiber.join(stopped)
      expect(logged).toContain("Model 'm' (version 1) has 2 in-flight inferences")
    }),
  )

  // L1.5.reload@all
  it.live(`${transport}: a change of the instances keeps open sequences, any other reload ends them`, () =>
    Effect.gen(function* () {
      const ports = yield* serve(accumulator, { repository: { control: "explicit", load: ["m"] } })
      expect(yield* sendOne(ports, 7n, "S", 1, 1)).toBe(1)
      const { text } = yield* http(ports, "/v2/models/m/config")
      const config: Record<string, unknown> = JSON.parse(text)
      const load = (changes: object) =>
        http(
          ports,
          "/v2/repository/models/m/load",
          JSON.stringify({ parameters: { config: JSON.stringify({ ...config, ...changes }) } }),
        )
      const grown = yield* load({ instance_group: [{ name: "m", kind: "KIND_CPU", count: 3 }] })
      expect(grown.status).toBe(200)
      expect(yield* sendOne(ports, 7n, "", 2, 3)).toBe(3)
      const other = yield* load({ instance_group: [{ name: "other", kind: "KIND_CPU", count: 1 }] })
      expect(other.status).toBe(200)
      expect(yield* sendOne(ports, 7n, "", 3, 6)).toBe(6)
      const idle = { ...Object(config["sequence_batching"]), max_sequence_idle_microseconds: 7_000_000 }
      expect((yield* load({ sequence_batching: idle })).status).toBe(200)
      expect(yield* sendOne(ports, 7n, "", 4, lost("7"))).toBe(lost("7"))
      expect(yield* sendOne(ports, 7n, "S", 5, 5)).toBe(5)
    }),
  )

  it.live(`${transport}: a sequence waits for a slot at most for its timeout`, () =>
    Effect.gen(function* () {
      const ports = yield* serve(oneSlot)
      expect(yield* sendOne(ports, 1n, "S", 1, 1)).toBe(1)
      const late = yield* sendOne(ports, 2n, "S", 1, 1, { timeout: 20_000n })
      expect(late).toBe("timeout of the corresponding sequence has been expired")
      expect(yield* sendOne(ports, 2n, "", 1, lost("2"))).toBe(lost("2"))
      expect(yield* sendOne(ports, 1n, "E", 2, 3)).toBe(3)
      expect(yield* sendOne(ports, 2n, "SE", 5, 5)).toBe(5)
    }),
  )

  it.live(`${transport}: metrics count the sequences of a model`, () =>
    Effect.gen(function* () {
      const ports = yield* serve({ ...oneSlot, idle: 300_000 })
      expect(yield* sendOne(ports, 1n, "S", 1, 1)).toBe(1)
      expect(yield* metric(ports, "nereid_sequences_live")).toBe(1)
      expect(yield* metric(ports, "nereid_sequence_state_bytes")).toBe(4)
      expect(yield* sendOne(ports, 2n, "SE", 5, 5)).toBe(5)
      expect(yield* metric(ports, "nereid_sequences_ended", 'reason="expired"')).toBe(1)
      expect(yield* metric(ports, "nereid_sequences_ended", 'reason="ended"')).toBe(1)
      expect(yield* metric(ports, "nereid_sequences_live")).toBe(0)
      expect(yield* metric(ports, "nereid_sequences_backlog")).toBe(0)
    }),
  )
}

it.live("a caller that disconnects ends its sequence, and frees its slot", () =>
  Effect.gen(function* () {
    // The first batch waits for one request in the slot and two in the backlog.
    const ports = yield* serve({ ...oneSlot, hold: [1, 2] })
    const call = (id: number, signal: AbortSignal | null = null) =>
      fetch(`http://127.0.0.1:${ports.http}/v2/models/m/infer`, {
        method: "POST",
        body: JSON.stringify({
          parameters: { sequence_id: id, sequence_start: true, sequence_end: true },
          inputs: [{ name: "INPUT", shape: [1, 1], datatype: "INT32", data: [id] }],
        }),
        signal,
      })
    const pending = (requests: number) =>
      Effect.repeat(metric(ports, "nv_inference_pending_request_count"), { until: (count) => count === requests })
    const leaving = new AbortController()
    const first = call(1, leaving.signal).catch(() => "left")
    yield* pending(1)
    const second = call(2)
    yield* pending(2)
    leaving.abort()
    expect(yield* Effect.promise(() => first)).toBe("left")
    yield* pending(1)
    const others = [second, call(3), call(4)]
    const answers = yield* Effect.promise(() => Promise.all(others.map(async (one) => (await one).status)))
    expect(answers).toEqual([200, 200, 200])
  }),
)

it.live("the error of a lost sequence says why, in a header", () =>
  Effect.gen(function* () {
    const ports = yield* serve(accumulator, { repository: { control: "explicit", load: ["m"] } })
    const call = (flags: object) =>
      http(
        ports,
        "/v2/models/m/infer",
        JSON.stringify({
          parameters: { sequence_id: 9, ...flags },
          inputs: [{ name: "INPUT", shape: [1, 1], datatype: "INT32", data: [1] }],
        }),
      )
    const never = yield* call({})
    expect(never.status).toBe(400)
    expect(never.headers.get("nereid-error")).toBe("SequenceNotFound")
    expect(never.headers.get("nereid-error-detail")).toBe('{"reason":"neverStarted"}')
    yield* call({ sequence_start: true, sequence_end: true })
    expect((yield* call({})).headers.get("nereid-error-detail")).toBe('{"reason":"ended"}')
    yield* call({ sequence_start: true })
    yield* http(ports, "/v2/repository/models/m/unload", "{}")
    yield* http(ports, "/v2/repository/models/m/load", "{}")
    expect((yield* call({})).headers.get("nereid-error-detail")).toBe('{"reason":"reloaded"}')
  }),
)

it.live("the age of the oldest sequence grows until its end", () =>
  Effect.gen(function* () {
    const ports = yield* serve(accumulator)
    const [, send] = transports(4)[0] ?? []
    if (send === undefined) throw new Error("no transport")
    const age = () => metric(ports, "nereid_sequence_age_seconds", 'model="m"')
    const one = (...args: Parameters<typeof step>) => Effect.promise(() => send(ports, "m", [step(...args)]))
    expect(yield* age()).toBe(0)
    yield* one(7n, "S", 1, 1)
    const first = (yield* age()) ?? 0
    expect(first).toBeGreaterThan(0)
    expect(first).toBeLessThan(60)
    yield* one(8n, "S", 1, 1)
    expect(yield* age()).toBeGreaterThan(first)
    yield* one(7n, "E", 1, 2)
    yield* one(8n, "E", 1, 2)
    expect(yield* age()).toBe(0)
  }),
)
