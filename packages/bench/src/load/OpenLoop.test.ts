/** Open loops with a target and a clock that the test controls. */
import { expect, it, onTestFinished, vi } from "vitest"
import * as Arrivals from "@nereid/core/internal/synthetic/Arrivals"
import type { Clock } from "./Clock.ts"
import { Lane } from "./Lane.ts"
import type { CallDeadline, Overload, Replies, Target } from "../target/Load.ts"
import * as OpenLoop from "./OpenLoop.ts"
import * as Random from "@nereid/core/internal/synthetic/Random"

class TestClock implements Clock {
  time = 1000
  #wake: { readonly at: number; readonly call: () => void } | undefined

  now(): number {
    return this.time
  }

  wake(at: number, call: () => void): void {
    this.#wake = { at, call }
  }

  /** Advances the clock. `late`: delay of the callback. */
  advance(by: number, late = 0): void {
    const until = this.time + by
    while (this.#wake !== undefined && this.#wake.at + late <= until) {
      this.time = this.#wake.at + late
      const { call } = this.#wake
      this.#wake = undefined
      call()
    }
    this.time = until
  }

  close(): void {}
}

/** Records the requests that were sent: connection number and scheduled time. */
const start = async (options: Partial<OpenLoop.OpenLoopOptions> & { readonly lanes?: number }) => {
  const sent: Array<{
    readonly connection: number
    readonly startedAt: number
    readonly deadline: CallDeadline | undefined
    readonly replies: Replies
  }> = []
  let connections = 0
  const target: Target = {
    perConnection: options.perLane ?? Infinity,
    connect: async (replies) => {
      const connection = connections++
      return {
        accepts: true,
        send: (startedAt, deadline) => sent.push({ connection, startedAt, deadline, replies }),
        close: () => {},
      }
    },
  }
  const lanes = Array.from({ length: options.lanes ?? 1 }, () => new Lane(target))
  for (const lane of lanes) await lane.open()
  const clock = new TestClock()
  const extent = "requests" in options ? { requests: options.requests ?? 1 } : { seconds: 0.1 }
  const measured = OpenLoop.run(lanes, {
    arrivals: Arrivals.constant(100),
    clock,
    maxOutstanding: Infinity,
    perLane: Infinity,
    ...options,
    ...extent,
  })
  const reply = (index: number, problem?: string, overload?: Overload) =>
    sent[index]?.replies.onReply(sent[index].startedAt, problem, overload)
  return { sent, clock, measured, reply }
}

it("sends when the time has come, whether or not there was a reply", async () => {
  const { sent, clock, measured, reply } = await start({})
  clock.advance(9)
  expect(sent).toHaveLength(0)
  clock.advance(25)
  expect(sent.map(({ startedAt }) => startedAt)).toEqual([1010, 1020, 1030])
  clock.advance(100)
  // The round is 100 ms long, and the request that would come at its end is the next round's.
  expect(sent).toHaveLength(9)
  for (let index = 0; index < 9; index++) reply(index)
  const { requests, seconds, latencies, held, unsent } = await measured
  expect({ requests, held, unsent }).toEqual({ requests: 9, held: 0, unsent: 0 })
  // Until the last reply.
  expect(seconds).toBeCloseTo(0.134)
  expect(latencies.max).toBeCloseTo(124, 0)
})

it("measures the latency of a late request from its scheduled time, and reports the lateness", async () => {
  const { clock, measured, reply } = await start({ requests: 2 })
  clock.advance(40, 5)
  clock.advance(3)
  reply(0)
  reply(1, "no")
  const { latencies, lateness, problems } = await measured
  expect(latencies.max).toBeCloseTo(33, 1)
  expect(lateness.count).toBe(2)
  expect(lateness.max).toBeCloseTo(5, 2)
  expect(problems.count).toBe(1)
})

it("a request beyond the limit of requests in flight waits, and its latency includes the wait", async () => {
  const { sent, clock, measured, reply } = await start({ requests: 4, maxOutstanding: 2 })
  clock.advance(45)
  expect(sent.map(({ startedAt }) => startedAt)).toEqual([1010, 1020])
  reply(0)
  expect(sent.map(({ startedAt }) => startedAt)).toEqual([1010, 1020, 1030])
  clock.advance(5)
  reply(1)
  reply(2)
  expect(sent).toHaveLength(4)
  reply(3)
  const { requests, held, lateness } = await measured
  expect({ requests, held, late: lateness.count }).toEqual({ requests: 4, held: 2, late: 2 })
})

it("counts requests that could not be sent within the round, and does not send them later", async () => {
  const { sent, clock, measured, reply } = await start({ maxOutstanding: 2 })
  clock.advance(500)
  expect(sent).toHaveLength(2)
  reply(0)
  reply(1)
  expect(await measured).toMatchObject({ requests: 2, unsent: 7, seconds: expect.closeTo(0.5) })
})

it("few connections do what few can, where each takes one request", async () => {
  const { sent, clock, measured, reply } = await start({ requests: 4, lanes: 3, perLane: 1 })
  clock.advance(10)
  reply(0)
  clock.advance(20)
  reply(1)
  reply(2)
  clock.advance(10)
  reply(3)
  expect(sent.map(({ connection }) => connection)).toEqual([0, 0, 1, 1])
  expect((await measured).requests).toBe(4)
})

it("connections take turns, where each takes any number", async () => {
  const { sent, clock, measured, reply } = await start({ requests: 4, lanes: 2 })
  clock.advance(50)
  expect(sent.map(({ connection }) => connection).toSorted()).toEqual([0, 0, 1, 1])
  for (const index of sent.keys()) reply(index)
  await measured
})

it("nothing is given up while there is nothing to wait for", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] })
  onTestFinished(() => void vi.useRealTimers())
  const { clock, measured, reply } = await start({ requests: 1, patience: 5 })
  vi.advanceTimersByTime(30)
  clock.advance(10)
  vi.advanceTimersByTime(8)
  reply(0)
  expect((await measured).requests).toBe(1)
})

const deadline = { milliseconds: 25, isTold: false }

it("callers give up at their deadline, and their requests are cancelled", async () => {
  const { sent, clock, measured, reply } = await start({ requests: 4, deadline, maxOutstanding: 2 })
  const cancelled: Array<number> = []
  clock.advance(20)
  for (const [index, { deadline }] of sent.entries()) if (deadline) deadline.cancel = () => cancelled.push(index)
  // The third waits until the first is given up.
  clock.advance(14)
  expect(sent.map(({ startedAt }) => startedAt)).toEqual([1010, 1020])
  clock.advance(2)
  expect(cancelled).toEqual([0])
  expect(sent.map(({ startedAt }) => startedAt)).toEqual([1010, 1020, 1030])
  reply(1)
  reply(2, "RESOURCE_EXHAUSTED", "refused")
  clock.advance(10)
  reply(3, "DEADLINE_EXCEEDED", "late")
  const { requests, goodput, problems } = await measured
  expect({ requests, late: goodput?.late, refused: goodput?.refused.count }).toEqual({
    requests: 1,
    late: 2,
    refused: 1,
  })
  expect(goodput?.refused.max).toBeCloseTo(6, 1)
  // The one in time, the one that was given up, and the one that the server ended.
  expect(goodput?.accepted.count).toBe(3)
  expect(goodput?.accepted.min).toBeCloseTo(16, 1)
  expect(problems.count).toBe(0)
})

it("a reply after the deadline is late, and other problems stay problems", async () => {
  const { clock, measured, reply } = await start({ requests: 2, deadline })
  clock.advance(20)
  clock.time += 16
  reply(0)
  reply(1, "INTERNAL")
  const { requests, goodput, problems } = await measured
  expect({ requests, late: goodput?.late, problems: problems.count }).toEqual({ requests: 0, late: 1, problems: 1 })
})

it("arrivals come as often as they are to, and the same again for the same seed", () => {
  const gaps = (seed: number) => {
    const { next } = Arrivals.poisson(1000, Random.make(seed))
    return Array.from({ length: 20_000 }, next)
  }
  const some = gaps(1)
  expect(gaps(1)).toEqual(some)
  expect(gaps(2)).not.toEqual(some)
  const mean = some.reduce((sum, gap) => sum + gap, 0) / some.length
  expect(mean).toBeCloseTo(1, 1)
  // Variance of an exponential distribution, whose deviation is its mean.
  const variance = some.reduce((sum, gap) => sum + (gap - mean) ** 2, 0) / some.length
  expect(Math.sqrt(variance)).toBeCloseTo(1, 1)
})
