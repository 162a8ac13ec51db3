/**
 * Sequences under the rate limiter: their slots keep them on their instances, and the limiter only delays and orders
 * their executions. Models are scripts that block until the test ends their execution.
 */
import { afterEach, expect, it } from "@effect/vitest"
import { RateLimit } from "@nereid/core"
import { Effect, Fiber } from "effect"
import { blockedExecutions as executions, blockingSequences, blockingSteps } from "../conformance/BlockedExecutions.ts"
import * as sequences from "../fixtures/sequences.ts"
import { step, whole } from "./Scenario.ts"
import { http, metric, overStream, type Ports, transports } from "./SequenceCalls.ts"
import { serveFiles } from "./SequenceServer.ts"

interface Served {
  /** Fields of `sequence_batching`. */
  readonly fields?: string
  readonly groups: string
  readonly idle?: number
  readonly maxBatchSize?: number
}

const group = (resources: Readonly<Record<string, number>>, more = "", count = 1) =>
  `instance_group { count: ${count} kind: KIND_CPU rate_limiter { ${Object.entries(resources)
    .map(([name, units]) => `resources { name: "${name}" count: ${units} }`)
    .join(" ")} ${more} } }`

const strategies = ["direct {}", "oldest { max_candidate_sequences: 4 }"]

const filesOf = (name: string, { fields = "", groups, idle = 60_000_000, maxBatchSize = 1 }: Served) => ({
  [`${name}/config.pbtxt`]: sequences
    .config(fields, { idle, maxBatchSize })
    .replace("instance_group { count: 1 kind: KIND_CPU }", groups),
  [`${name}/1/model.ts`]: blockingSequences(name),
})

const serve = (models: Readonly<Record<string, Served>>, more: Readonly<Record<string, string>> = {}) =>
  serveFiles({ ...Object.assign({}, ...Object.entries(models).map(([name, of]) => filesOf(name, of))), ...more }).pipe(
    Effect.provide(RateLimit.layer()),
  )

afterEach(() => executions.reset())

const running = (...names: ReadonlyArray<string>) =>
  Effect.repeat(
    Effect.sync(() => String(executions.running)),
    { until: (all) => all === String(names) },
  )

const pending = (ports: Ports & { readonly metrics: number }, model: string, count: number) =>
  Effect.repeat(metric(ports, "nv_inference_pending_request_count", `model="${model}"`), {
    until: (waiting) => waiting === count,
  })

/** Ends executions one after the other; the order in which they began, with those so far. */
const order = Effect.fnUntraced(function* (count: number) {
  for (let ended = 0; ended < count; ended++) {
    yield* Effect.repeat(
      Effect.sync(() => executions.running.length),
      { until: (all) => all === 1 },
    )
    executions.end()
  }
  return [...executions.begun]
})

const stream = (ports: Ports, model: string, id: bigint, inputs: ReadonlyArray<number>) =>
  Effect.forkChild(
    Effect.promise(() => overStream(true)(ports, model, whole(id, inputs))),
    { startImmediately: true },
  )

for (const fields of strategies) {
  for (const [transport, send] of transports(1)) {
    // L4.waits@all
    it.live(`${transport}: a request waits for the resources of another model, as pending, ${fields}`, () =>
      Effect.gen(function* () {
        const ports = yield* serve({
          one: { fields, groups: group({ R: 1 }) },
          two: { fields, groups: group({ R: 1 }) },
        })
        const call = (model: string, id: bigint) =>
          Effect.forkChild(
            Effect.promise(() => send(ports, model, [step(id, "SE", 3, 3)])),
            { startImmediately: true },
          )
        const first = yield* call("one", 1n)
        yield* running("one 1")
        const waits = yield* call("two", 5n)
        yield* pending(ports, "two", 1)
        const seenAt = performance.now()
        // A slot and a turn are not enough.
        expect(executions.begun).toEqual(["one 1"])
        const heldNanos = (performance.now() - seenAt) * 1e6
        executions.end()
        yield* running("two 5")
        yield* pending(ports, "two", 0)
        expect(yield* Fiber.join(first)).toEqual([3])
        executions.end()
        expect(yield* Fiber.join(waits)).toEqual([3])
        const { text } = yield* http(ports, "/v2/models/two/stats")
        const stats: {
          readonly model_stats: [{ readonly inference_stats: { readonly queue: { readonly ns: number } } }]
        } = JSON.parse(text)
        expect(stats.model_stats[0].inference_stats.queue.ns).toBeGreaterThan(heldNanos)
      }),
    )
  }

  it.live(`the executions of two models take turns, each sequence in its order, ${fields}`, () =>
    Effect.gen(function* () {
      const ports = yield* serve({ one: { fields, groups: group({ R: 1 }) }, two: { fields, groups: group({ R: 1 }) } })
      const one = yield* stream(ports, "one", 1n, [1, 2, 3])
      yield* running("one 1")
      const two = yield* stream(ports, "two", 5n, [4, 5, 6])
      yield* pending(ports, "two", 3)
      expect(yield* order(6)).toEqual(["one 1", "two 5", "one 1", "two 5", "one 1", "two 5"])
      expect([yield* Fiber.join(one), yield* Fiber.join(two)]).toEqual([
        [1, 2, 3],
        [4, 5, 6],
      ])
    }),
  )

  it.live(`those that wait go by their executions, times priority, ${fields}`, () =>
    Effect.gen(function* () {
      const ports = yield* serve({
        one: { fields, groups: group({ R: 1 }) },
        two: { fields, groups: group({ R: 1 }, "priority: 3") },
        three: { fields, groups: group({ R: 1 }) },
      })
      const inputs = [1, 2, 3, 4]
      const one = yield* stream(ports, "one", 1n, inputs)
      yield* running("one 1")
      const two = yield* stream(ports, "two", 2n, inputs)
      yield* pending(ports, "two", 4)
      const three = yield* stream(ports, "three", 3n, inputs)
      yield* pending(ports, "three", 4)
      // An instance waits again once its next request has followed: behind the one that goes at the end of its own.
      const expected = ["one", "two", "three", "one", "three", "one", "three", "two", "one", "three", "two", "two"]
      expect((yield* order(12)).map((name) => name.split(" ")[0])).toEqual(expected)
      for (const fiber of [one, two, three]) expect(yield* Fiber.join(fiber)).toEqual(inputs)
    }),
  )

  it.live(`a sequence waits for its own instance, while another instance takes a new sequence, ${fields}`, () =>
    Effect.gen(function* () {
      const ports = yield* serve({
        // The second instance needs no resource.
        m: { fields, groups: `${group({ R: 1 })} instance_group { count: 1 kind: KIND_CPU }` },
        other: { fields, groups: group({ R: 1 }) },
      })
      const holds = yield* stream(ports, "other", 9n, [0])
      yield* running("other 9")
      const first = yield* stream(ports, "m", 1n, [1, 2])
      yield* pending(ports, "m", 2)
      const second = yield* stream(ports, "m", 2n, [3, 4])
      yield* running("other 9", "m 2")
      executions.end("m 2")
      yield* running("other 9", "m 2")
      executions.end("m 2")
      expect(yield* Fiber.join(second)).toEqual([3, 4])
      expect(executions.begun).toEqual(["other 9", "m 2", "m 2"])
      expect((yield* order(3)).slice(3)).toEqual(["m 1", "m 1"])
      expect(yield* Fiber.join(first)).toEqual([1, 2])
      yield* Fiber.join(holds)
    }),
  )

  it.live(`a request that waits for resources does not expire, while an idle sequence does, ${fields}`, () =>
    Effect.gen(function* () {
      const ports = yield* serve({
        m: { fields, groups: group({ R: 1 }), idle: 50_000, maxBatchSize: 4 },
        other: { fields, groups: group({ R: 1 }) },
      })
      const send = (id: bigint, flags: "S" | "SE") =>
        Effect.promise(() => overStream(true)(ports, "m", [step(id, flags, 3, 3)]))
      const idle = yield* Effect.forkChild(send(7n, "S"), { startImmediately: true })
      yield* running("m 7")
      executions.end()
      yield* Fiber.join(idle)
      const holds = yield* stream(ports, "other", 9n, [0])
      yield* running("other 9")
      const waits = yield* Effect.forkChild(send(8n, "SE"), { startImmediately: true })
      yield* pending(ports, "m", 1)
      yield* Effect.repeat(metric(ports, "nereid_sequences_ended", 'model="m",reason="expired"'), {
        until: (count) => count === 1,
      })
      executions.end()
      yield* running("m 8")
      executions.end()
      expect(yield* Fiber.join(waits)).toEqual([3])
      yield* Fiber.join(holds)
    }),
  )

  it.live(`a caller that leaves gives up its turn, ${fields}`, () =>
    Effect.gen(function* () {
      const ports = yield* serve({
        m: { fields, groups: group({ R: 1 }) },
        other: { fields, groups: group({ R: 1 }) },
      })
      const holds = yield* stream(ports, "other", 9n, [0])
      yield* running("other 9")
      const leaving = new AbortController()
      const left = fetch(`http://127.0.0.1:${ports.http}/v2/models/m/infer`, {
        method: "POST",
        body: JSON.stringify({
          parameters: { sequence_id: 1, sequence_start: true, sequence_end: true },
          inputs: [{ name: "INPUT", shape: [1, 1], datatype: "INT32", data: [1] }],
        }),
        signal: leaving.signal,
      }).catch(() => "left")
      yield* pending(ports, "m", 1)
      leaving.abort()
      expect(yield* Effect.promise(() => left)).toBe("left")
      yield* pending(ports, "m", 0)
      const next = yield* stream(ports, "other", 10n, [4])
      yield* pending(ports, "other", 1)
      expect(yield* order(2)).toEqual(["other 9", "other 10"])
      yield* Fiber.join(holds)
      expect(yield* Fiber.join(next)).toEqual([4])
    }),
  )
}

it.live("an iterative model gives its resources back after each step", () =>
  Effect.gen(function* () {
    const config = sequences.config("iterative_sequence: true", { maxBatchSize: 1 })
    const ports = yield* serve(
      { other: { groups: group({ R: 1 }) } },
      {
        "steps/config.pbtxt": `model_transaction_policy { decoupled: true } ${config.replace(
          "instance_group { count: 1 kind: KIND_CPU }",
          group({ R: 1 }),
        )}`,
        "steps/1/model.ts": blockingSteps("steps"),
      },
    )
    const steps = yield* Effect.forkChild(
      Effect.promise(() => overStream(true)(ports, "steps", [step(0n, "", 3, 3)])),
      { startImmediately: true },
    )
    yield* running("steps")
    const other = yield* stream(ports, "other", 5n, [1])
    yield* pending(ports, "other", 1)
    expect(yield* order(4)).toEqual(["steps", "other 5", "steps", "steps"])
    expect(yield* Fiber.join(steps)).toEqual([3, 3, 3])
    expect(yield* Fiber.join(other)).toEqual([1])
  }),
)

it.live("a sequence whose instance needs more than is free lets none pass", () =>
  Effect.gen(function* () {
    const ports = yield* serve({
      one: { groups: group({ R: 1 }) },
      two: { groups: group({ R: 2 }) },
      three: { groups: group({ R: 1 }) },
    })
    const first = yield* stream(ports, "one", 1n, [1])
    yield* running("one 1")
    const second = yield* stream(ports, "two", 2n, [2])
    yield* pending(ports, "two", 1)
    const third = yield* stream(ports, "three", 3n, [3])
    yield* pending(ports, "three", 1)
    expect(executions.begun).toEqual(["one 1"])
    expect(yield* order(3)).toEqual(["one 1", "two 2", "three 3"])
    for (const fiber of [first, second, third]) yield* Fiber.join(fiber)
  }),
)
