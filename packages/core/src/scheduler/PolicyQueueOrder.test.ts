/**
 * The queue against a list that is sorted anew each time: requests of any level, time and group, that leave in any way.
 */
import { expect, it } from "@effect/vitest"
import { QueuedRequest } from "./QueuedRequest.ts"
import { noParameters } from "../request/Request.ts"
import { PolicyQueue } from "./PolicyQueue.ts"
import { resolve } from "../model/QueuePolicy.ts"
import { ModelStatistics } from "../metrics/ModelStatistics.ts"

interface Waiting {
  readonly entry: QueuedRequest
  readonly key: string
  readonly level: number
  readonly arrival: number
  readonly expiresAt: number
  /** When it was found to be late; 0 for those in time. */
  late: number
}

const random = (seed: number) => {
  let state = seed
  return (below: number) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

const queueing = resolve("m", {
  maxQueueSize: 40,
  allowTimeoutOverride: true,
  priorities: {
    levels: 4,
    default: 3,
    policies: { 2: { timeoutAction: "DELAY", defaultTimeout: "60 micros" }, 4: { maxQueueSize: 5 } },
  },
})

const same = (some: ReadonlyArray<QueuedRequest>, others: ReadonlyArray<QueuedRequest>) =>
  some.length === others.length && some.every((entry, index) => entry === others[index])

it.each([1, 2, 3])("seed %i", (seed) => {
  if (queueing === undefined) throw new Error("It has levels.")
  const below = random(seed)
  const rejected = new Set<QueuedRequest>()
  const reject = (entry: QueuedRequest) => void rejected.add(entry)
  const queue = new PolicyQueue({
    maxBatchSize: 4,
    maxQueueDelay: 0,
    maxQueueSize: 40,
    groupOrder: "independent",
    preferredBatchSizes: [],
    queueing,
    reject,
  })
  let waiting: Array<Waiting> = []
  let now = 0
  let lateness = 0
  let refused = 0

  const inOrder = () => waiting.toSorted((a, b) => a.level - b.level || a.late - b.late || a.arrival - b.arrival)

  const expire = () => {
    const over = waiting.filter(({ expiresAt, late }) => late === 0 && expiresAt <= now)
    for (const one of over) if (one.level === 2) one.late = lateness += 1
    const gone = new Set(over.filter(({ level }) => level !== 2).map(({ entry }) => entry))
    waiting = waiting.filter(({ entry }) => !gone.has(entry))
    for (const entry of gone) expect(rejected.has(entry)).toBe(true)
  }

  const offer = (arrival: number) => {
    // Two that come at the same nanosecond go in any order.
    now += 1
    const priority = below(6)
    const timeout = below(3) === 0 ? below(80) : 0
    const parameters = { priority: BigInt(priority), timeout: BigInt(timeout) }
    const request = { id: "", inputs: [], rows: 1 + below(3), parameters, deadline: undefined }
    const entry = new QueuedRequest(request, () => {}, new ModelStatistics(), now)
    const level = priority >= 1 && priority <= 4 ? priority : 3
    const key = "ab"[below(2)] ?? ""
    const max = level === 4 ? 5 : level === 2 ? 1024 : 40
    // The policies of 2 and 4 are their own: neither lets a request shorten its time.
    const own = level === 2 ? 60 : level === 4 || timeout === 0 ? Infinity : timeout
    const hasRoom = waiting.filter((other) => other.level === level).length < max
    expect(queue.offer(entry, key)).toBe(hasRoom)
    if (hasRoom) waiting.push({ entry, key, level, arrival, expiresAt: now + own * 1e3, late: 0 })
    else refused += 1
  }

  const take = () => {
    const decision = queue.decide(now)
    expire()
    const [head] = inOrder()
    if (head === undefined) return expect(decision._tag).toBe("Empty")
    const expected: Array<QueuedRequest> = []
    let rows = 0
    for (const { entry, key } of inOrder()) {
      if (key !== head.key) continue
      if (expected.length > 0 && rows + entry.request.rows > 4) break
      rows += entry.request.rows
      expected.push(entry)
    }
    expect(decision._tag === "Take" && same(decision.requests, expected)).toBe(true)
    waiting = waiting.filter(({ entry }) => !expected.includes(entry))
    if (below(10) > 0) return
    // Some batches fail and are tried again, ahead of all, but for those that have left.
    queue.retry(expected)
    const left = expected.filter(() => below(2) === 0)
    for (const entry of left) queue.remove(entry)
    const tried = expected.filter((entry) => !left.includes(entry))
    if (tried.length === 0) return
    const retried = queue.decide(now)
    expect(retried._tag === "Take" && same(retried.requests, tried)).toBe(true)
  }

  for (let step = 0; step < 20_000; step++) {
    now += 1e3 * below(4)
    const action = below(8)
    if (action < 5) offer(step)
    else if (action < 6) take()
    else if (action < 7) {
      queue.expire(now)
      expire()
    } else {
      const one = waiting[below(waiting.length)]
      if (one !== undefined) queue.remove(one.entry)
      waiting = waiting.filter((other) => other !== one)
    }
    expect(queue.size).toBe(waiting.length)
  }
  expect(refused).toBeGreaterThan(0)
  expect(queue.clear().length).toBe(waiting.length)
  expect([queue.size, queue.expiresAt === Infinity || queue.decide(now)._tag === "Empty"]).toEqual([0, true])
})

it("an entry that was never in it, or has left, is removed without harm", () => {
  if (queueing === undefined) throw new Error("It has levels.")
  const queue = new PolicyQueue({
    maxBatchSize: 4,
    maxQueueDelay: 0,
    maxQueueSize: 40,
    groupOrder: "independent",
    preferredBatchSizes: [],
    queueing,
    reject: () => {},
  })
  const entry = new QueuedRequest(
    { id: "", inputs: [], rows: 1, parameters: noParameters, deadline: undefined },
    () => {},
    new ModelStatistics(),
    0,
  )
  queue.remove(entry)
  queue.offer(entry, "a")
  queue.remove(entry)
  queue.remove(entry)
  expect(queue.size).toBe(0)
})
