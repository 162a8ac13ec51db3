/** Sequences in a scheduler: slots, backlog, order, expiry and cancellation, on the test clock. */
import { assert, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect } from "vitest"
import { failureOf, sequences } from "./Sequences.fixture.ts"

const oldest = (slots: number) => ({ strategy: { _tag: "oldest" as const, slots } })

describe("direct", () => {
  it.effect("requests of different sequences share a batch, each in the row of its slot", () =>
    Effect.gen(function* () {
      const { send, batches, drain } = yield* sequences()
      yield* send("A", "S")
      yield* send("B", "S")
      yield* drain
      yield* send("B")
      yield* drain
      yield* send("A", "E")
      yield* drain
      expect(batches()).toEqual(["A1,B1@0", "-,B2@0", "A2@0"])
    }),
  )

  it.effect("requests of one sequence are executed one by one, in their order", () =>
    Effect.gen(function* () {
      const { send, batches, drain } = yield* sequences()
      for (const flags of ["S", "", "E"] as const) yield* send("A", flags)
      yield* drain
      expect(batches()).toEqual(["A1@0", "A2@0", "A3@0"])
    }),
  )

  it.effect("sequences spread over the instances, and keep theirs", () =>
    Effect.gen(function* () {
      const { send, batches, drain } = yield* sequences({ instanceCount: 2 })
      for (const id of ["A", "B", "C"]) yield* send(id, "S")
      yield* drain
      for (const id of ["C", "B", "A"]) yield* send(id, "E")
      yield* drain
      expect(batches().toSorted()).toEqual(["A1,C1@0", "A2,C2@0", "B1@1", "B2@1"])
    }),
  )

  it.effect("a request that finds no room names the limit", () =>
    Effect.gen(function* () {
      // The limit of the queue in the fixture is 1,000 requests.
      const { send, drain, scheduler } = yield* sequences({ ...oldest(1), maxBacklog: 1 })
      yield* send("A", "S")
      yield* drain
      yield* send("B", "S")
      expect(yield* failureOf(yield* send("C", "S"))).toBe(
        "[request id: C1] Exceeds maximum queue size: the backlog of sequences of model 'm' has reached its limit of 1. " +
          "Retry once a sequence has ended, or raise 'max_sequence_backlog' (in code 'maxBacklog')",
      )
      // Requests of the sequences that have begun only have the limit of the queue.
      while (scheduler.pending() < 1000) yield* send("B")
      expect(yield* failureOf(yield* send("A"))).toBe("[request id: A2] Exceeds maximum queue size")
      expect(yield* failureOf(yield* send("C", "S"))).toBe("[request id: C2] Exceeds maximum queue size")
    }),
  )

  it.effect("a request of an iterative model that finds no room names the limit", () =>
    Effect.gen(function* () {
      const { send, drain } = yield* sequences({ ...oldest(1), isIterative: true, maxBacklog: 0 })
      yield* send("A", "S")
      expect(yield* failureOf(yield* send("B", "S"))).toBe(
        "[request id: B1] Exceeds maximum queue size: the backlog of requests of model 'm' has reached its limit of 0. " +
          "Retry once a request has ended, or raise 'max_sequence_backlog' (in code 'maxBacklog')",
      )
      yield* drain
    }),
  )

  it.effect("no caller joins the request without an id of another one", () =>
    Effect.gen(function* () {
      const { send, drain, queue } = yield* sequences({ ...oldest(4), isIterative: true })
      const unnamed = { parameters: { sequence_id: 0n } }
      for (const name of ["A", "B", "C"]) yield* send(name, "", unnamed)
      expect(queue?.counts(0)).toMatchObject({ live: 3 })
      const guesses = yield* Effect.forEach([1n, 2n, 3n, 4n], (id) =>
        send(`guess ${id}`, "", { parameters: { sequence_id: id } }),
      )
      yield* drain
      for (const guess of guesses) expect(yield* failureOf(guess)).toContain("must specify the START flag")
    }),
  )

  // L1.5.conflict-log@HTTP
  it.effect("a START of a live sequence is warned about and counted, and of one that has ended is not", () =>
    Effect.gen(function* () {
      const { send, drain, warnings, queue } = yield* sequences()
      yield* send("A", "S")
      yield* send("A", "SE")
      yield* drain
      yield* send("A", "S")
      yield* drain
      expect(warnings).toEqual([
        "sequence A for model 'm' has a conflict. The previous sequence did not end before this sequence start. Previous " +
          "sequence will be terminated early.",
      ])
      expect(queue?.counts(0)).toMatchObject({ live: 1, ended: { replaced: 1, ended: 1 } })
    }),
  )

  it.effect("a sequence beyond the slots waits until one ends", () =>
    Effect.gen(function* () {
      const slots = { strategy: { _tag: "direct" as const, slots: 1, maxQueueDelay: 0, minSlotUtilization: 0 } }
      const { send, batches, drain, queue } = yield* sequences(slots)
      yield* send("A", "S")
      yield* send("B", "S")
      yield* send("B", "E")
      yield* drain
      expect(batches()).toEqual(["A1@0"])
      expect(queue?.counts(0)).toMatchObject({ live: 1, backlog: 1 })
      expect(queue?.backlogged).toBe(2)
      yield* send("A", "E")
      yield* drain
      expect(batches()).toEqual(["A1@0", "A2@0", "B1@0", "B2@0"])
      expect(queue?.counts(0)).toMatchObject({ live: 0, backlog: 0, ended: { ended: 2 } })
    }),
  )

  it.effect("the slot of an END takes the next sequence while the END executes", () =>
    Effect.gen(function* () {
      const { send, batches, complete, settle } = yield* sequences({
        strategy: { _tag: "direct", slots: 2, maxQueueDelay: 0, minSlotUtilization: 0 },
      })
      yield* send("A", "SE")
      yield* send("B", "S")
      yield* settle
      yield* send("B", "E")
      yield* send("C", "SE")
      yield* complete(0)
      yield* complete(1)
      expect(batches()).toEqual(["A1,B1@0", "C1,B2@0"])
    }),
  )

  it.effect("requests that may not share a batch wait, and leave their rows empty", () =>
    Effect.gen(function* () {
      const groupKey = ({ id }: { readonly id: string }) => (id.startsWith("B") ? "other" : "same")
      const { send, batches, drain, statistics } = yield* sequences({}, { groupKey })
      for (const id of ["A", "B", "C"]) yield* send(id, "SE")
      yield* drain
      expect(batches()).toEqual(["A1,-,C1@0", "-,B1@0"])
      expect(statistics.inferenceCount).toBe(3)
      expect([...statistics.batches.keys()]).toEqual([3, 2])
      expect(statistics.success.count).toBe(3)
    }),
  )

  it.effect("requests wait for others until enough slots have one, or for the delay", () =>
    Effect.gen(function* () {
      const { send, batches, drain, settle } = yield* sequences({
        maxIdle: 60e9,
        strategy: { _tag: "direct", slots: 4, maxQueueDelay: 3e9, minSlotUtilization: 0.5 },
      })
      yield* send("A", "S")
      yield* TestClock.adjust(1000)
      expect(batches()).toEqual([])
      yield* send("B", "S")
      yield* settle
      expect(batches()).toEqual(["A1,B1@0"])
      yield* drain
      yield* send("B")
      yield* TestClock.adjust(2999)
      expect(batches()).toHaveLength(1)
      yield* TestClock.adjust(2)
      expect(batches()).toEqual(["A1,B1@0", "-,B2@0"])
    }),
  )
})

describe("oldest", () => {
  it.effect("requests form batches in the order of their arrival, at most one of each sequence", () =>
    Effect.gen(function* () {
      const { send, batches, drain } = yield* sequences(oldest(6))
      for (const [id, flags] of [
        ["A", "S"],
        ["A", ""],
        ["B", "S"],
        ["C", "S"],
        ["A", "E"],
      ] as const)
        yield* send(id, flags)
      yield* drain
      expect(batches()).toEqual(["A1,B1,C1@0", "A2@0", "A3@0"])
    }),
  )

  it.effect("a cancelled request that may execute leaves alone", () =>
    Effect.gen(function* () {
      const { send, batches, drain, settle } = yield* sequences({ ...oldest(4) }, { maxQueueDelay: 1e9 })
      const first = yield* send("A", "S")
      yield* send("A", "E")
      yield* settle
      yield* Fiber.interrupt(first)
      yield* TestClock.adjust(1100)
      yield* drain
      expect(batches()).toEqual(["A2@0"])
    }),
  )
})

it.effect("any instance executes any request of a model whose state the scheduler holds", () =>
  Effect.gen(function* () {
    const { send, runs, complete, settle } = yield* sequences(
      { instanceCount: 2, strategy: { _tag: "free", slots: 100 } },
      { maxBatchSize: 1 },
    )
    yield* send("A", "S")
    yield* settle
    yield* send("B", "S")
    yield* settle
    yield* complete(0)
    yield* send("B")
    yield* settle
    yield* complete(1)
    expect(runs.map(({ instance }) => instance)).toEqual(["m_0_0", "m_0_1", "m_0_0"])
  }),
)

describe("lost sequences", () => {
  const text = (id: string) =>
    `inference request for sequence ${id} to model 'm' must specify the START flag on the first request of the sequence`

  it.effect("a request without START fails, with the reason", () =>
    Effect.gen(function* () {
      const { send, drain, queue, statistics } = yield* sequences()
      const reason = (id: string) =>
        Effect.map(Effect.flip(Fiber.join(fiberOf(id))), (error) => ("reason" in error ? error.reason : error._tag))
      const fibers = new Map<string, Effect.Success<ReturnType<typeof send>>>()
      const fiberOf = (id: string) => fibers.get(id) ?? assert.fail(id)
      fibers.set("N", yield* send("N"))
      expect(yield* failureOf(fiberOf("N"))).toBe(text("N"))
      expect(yield* reason("N")).toBe("neverStarted")
      yield* send("A", "SE")
      yield* send("B", "S")
      yield* drain
      fibers.set("A", yield* send("A"))
      expect(yield* reason("A")).toBe("ended")
      yield* TestClock.adjust(1001)
      fibers.set("B", yield* send("B"))
      expect(yield* reason("B")).toBe("expired")
      expect(queue?.counts(0)).toMatchObject({ live: 0, ended: { expired: 1, ended: 1 } })
      expect(statistics.fail.count).toBe(0)
    }),
  )

  it.effect("a sequence is idle from its last response on", () =>
    Effect.gen(function* () {
      const { send, complete, settle, queue } = yield* sequences()
      yield* send("A", "S")
      yield* TestClock.adjust(5000)
      yield* complete(0)
      yield* TestClock.adjust(999)
      expect(queue?.counts(0).live).toBe(1)
      yield* send("A")
      yield* settle
      yield* complete(1)
      yield* TestClock.adjust(999)
      expect(queue?.counts(0).live).toBe(1)
      yield* TestClock.adjust(2)
      expect(queue?.counts(0)).toMatchObject({ live: 0, ended: { expired: 1 } })
    }),
  )

  it.effect("the slot of an expired sequence goes to the backlog", () =>
    Effect.gen(function* () {
      const { send, batches, drain } = yield* sequences(oldest(1))
      yield* send("A", "S")
      yield* drain
      yield* send("B", "S")
      yield* TestClock.adjust(1001)
      yield* drain
      expect(batches()).toEqual(["A1@0", "B1@0"])
    }),
  )

  it.effect("a sequence whose timeout passes in the backlog fails as a whole", () =>
    Effect.gen(function* () {
      const { send, drain, statistics } = yield* sequences({ ...oldest(1), maxIdle: 60e9 })
      yield* send("A", "S")
      yield* drain
      const first = yield* send("B", "S")
      const second = yield* send("B", "", { parameters: { timeout: 3_000_000n } })
      yield* TestClock.adjust(3001)
      const message = "timeout of the corresponding sequence has been expired"
      expect([yield* failureOf(first), yield* failureOf(second)]).toEqual([message, message])
      expect(statistics.failures.REJECTED).toBe(2)
      expect(yield* failureOf(yield* send("B"))).toBe(text("B"))
    }),
  )

  it.effect("a cancelled request ends its sequence, and those behind it", () =>
    Effect.gen(function* () {
      const { send, batches, drain, settle, statistics } = yield* sequences()
      yield* send("A", "S")
      yield* settle
      const second = yield* send("A")
      const third = yield* send("A", "E")
      yield* Fiber.interrupt(second)
      yield* drain
      expect((yield* Effect.flip(Fiber.join(third)))._tag).toBe("Cancelled")
      expect(batches()).toEqual(["A1@0"])
      expect(statistics.failures.CANCELED).toBe(2)
    }),
  )

  it.effect("requests ahead of a cancelled one are executed, before the slot is free", () =>
    Effect.gen(function* () {
      const { send, batches, drain, queue } = yield* sequences({
        maxIdle: 60e9,
        strategy: { _tag: "direct", slots: 2, maxQueueDelay: 3e9, minSlotUtilization: 1 },
      })
      yield* send("A", "S")
      yield* send("A")
      const third = yield* send("A")
      const end = yield* send("A", "E")
      yield* Fiber.interrupt(third)
      expect((yield* Effect.flip(Fiber.join(end)))._tag).toBe("Cancelled")
      expect(queue?.counts(0)).toMatchObject({ live: 1, ended: { cancelled: 0 } })
      yield* TestClock.adjust(3001)
      yield* drain
      expect(batches()).toEqual(["A1@0", "A2@0"])
      expect(queue?.counts(0)).toMatchObject({ live: 0, ended: { cancelled: 1, ended: 0 } })
    }),
  )

  it.effect("a cancelled request in the backlog ends its whole sequence at once", () =>
    Effect.gen(function* () {
      const { send, drain, queue } = yield* sequences(oldest(1))
      yield* send("A", "S")
      yield* drain
      const first = yield* send("B", "S")
      const second = yield* send("B", "E")
      yield* Fiber.interrupt(second)
      expect((yield* Effect.flip(Fiber.join(first)))._tag).toBe("Cancelled")
      expect(queue?.counts(0)).toMatchObject({ live: 1, backlog: 0 })
    }),
  )
})

it.effect("a START within a sequence begins it anew behind its requests, with a warning", () =>
  Effect.gen(function* () {
    const { send, runs, drain, warnings } = yield* sequences()
    for (const flags of ["S", "", "S", "E"] as const) yield* send("A", flags)
    yield* drain
    const states = runs.map(({ batch }) => batch.requests[0]?.sequence?.state)
    expect(states[0]).toBe(states[1])
    expect(states[1]).not.toBe(states[2])
    expect(states[2]).toBe(states[3])
    expect(warnings).toHaveLength(1)
  }),
)

it.effect("an id that has ended begins another sequence beside the old one", () =>
  Effect.gen(function* () {
    const { send, batches, drain, settle } = yield* sequences()
    yield* send("A", "S")
    yield* settle
    yield* send("A", "E")
    yield* send("A", "S")
    yield* drain
    expect(batches()).toEqual(["A1@0", "A2,A3@0"])
  }),
)

it.effect("a stop refuses all that waits, and ends the sequences", () =>
  Effect.gen(function* () {
    const { scheduler, send, settle, queue } = yield* sequences(oldest(1))
    yield* send("A", "S")
    yield* settle
    const second = yield* send("A")
    const waiting = yield* send("B", "S")
    yield* Effect.forkChild(scheduler.stop)
    yield* settle
    expect(yield* failureOf(second)).toContain("stopped accepting")
    expect(yield* failureOf(waiting)).toContain("stopped accepting")
    expect(queue?.counts(0)).toMatchObject({ live: 0, backlog: 0 })
    expect(queue?.size).toBe(0)
  }),
)
