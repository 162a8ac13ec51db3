/** RequestQueue.ts beside PolicyQueue.ts: after any sequence of operations, both decide alike. */
import { constVoid } from "effect/Function"
import * as fc from "fast-check"
import { expect, it } from "vitest"
import { ModelStatistics } from "../metrics/ModelStatistics.ts"
import { plain } from "../model/QueuePolicy.ts"
import { PolicyQueue } from "./PolicyQueue.ts"
import type { Decision, Queue } from "./Queue.ts"
import { QueuedRequest } from "./QueuedRequest.ts"
import { RequestQueue } from "./RequestQueue.ts"
import { request } from "./Scheduler.fixture.ts"

const maxBatchSize = 4
const base = { maxBatchSize, maxQueueDelay: 10, maxQueueSize: 12 }

const step = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ offer: fc.integer({ min: 1, max: maxBatchSize }), key: fc.constantFrom("a", "b", "c") }),
  },
  { weight: 3, arbitrary: fc.record({ decide: fc.constant(true) }) },
  { weight: 2, arbitrary: fc.record({ wait: fc.integer({ min: 1, max: 12 }) }) },
  { weight: 1, arbitrary: fc.record({ remove: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ retry: fc.constant(true) }) },
)

type Step = typeof step extends fc.Arbitrary<infer S> ? S : never

const statistics = new ModelStatistics()

/** The outcome of each step. */
const play = (queue: Queue, steps: ReadonlyArray<Step>): ReadonlyArray<unknown> => {
  let now = 0
  let count = 0
  let taken: ReadonlyArray<QueuedRequest> = []
  const offered: Array<QueuedRequest> = []
  const shown = (decision: Decision) =>
    decision._tag === "Take"
      ? decision.requests.map((entry) => entry.request.id)
      : decision._tag === "Wait"
        ? decision.until
        : decision._tag
  return steps.map((step) => {
    if ("offer" in step) {
      // No two requests at the same time, as with a monotonic clock.
      now += 0.001
      const entry = new QueuedRequest(request(step.offer, { id: `${count++}` }), constVoid, statistics, now)
      offered.push(entry)
      return queue.offer(entry, step.key)
    }
    if ("wait" in step) now += step.wait
    else if ("remove" in step) {
      const entry = offered[step.remove % Math.max(1, offered.length)]
      if (entry !== undefined) queue.remove(entry)
    } else if ("retry" in step) {
      if (taken.length > 0) queue.retry(taken)
      taken = []
    } else {
      const decision = queue.decide(now)
      if (decision._tag === "Take") taken = decision.requests
      return [shown(decision), queue.size]
    }
    return queue.size
  })
}

it.each(["independent", "arrival"] as const)("decides as a PolicyQueue without policies does (%s)", (groupOrder) => {
  const options = { ...base, groupOrder }
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const reject = () => expect.unreachable("no request has a timeout")
      const policies = new PolicyQueue({
        ...options,
        preferredBatchSizes: [],
        queueing: plain(options.maxQueueSize),
        reject,
      })
      expect(play(new RequestQueue(options), steps)).toEqual(play(policies, steps))
    }),
    { numRuns: 2000 },
  )
})
