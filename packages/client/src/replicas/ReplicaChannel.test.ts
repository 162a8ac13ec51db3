/** Calls over replicas whose channels a test scripts, on a virtual clock. test/replicas has real servers. */
import { Context, Effect, Metric, Result } from "effect"
import { expect, it } from "vitest"
import * as Errors from "@nereid/core/Errors"
import type { InferenceError } from "@nereid/core/internal/error/InferenceError"
import type { Parameters } from "@nereid/core/internal/request/Request"
import type { WireRequest, WireResponse } from "@nereid/core/internal/wire/WireRequest"
import type { FailureCause } from "../channel/Channel.ts"
import { EffectMetrics } from "./EffectMetrics.ts"
import * as ReplicaChannel from "./ReplicaChannel.ts"
import { type ReplicaOptions, type ReplicatedSettings, settings } from "./ReplicatedOptions.ts"
import { type ScriptedCall, ScriptedChannel } from "./ScriptedChannel.fixture.ts"
import { VirtualTimers } from "./VirtualTimers.fixture.ts"

const request = (parameters: Parameters = {}): WireRequest => ({
  modelName: "double",
  modelVersion: "",
  id: "",
  parameters,
  inputs: [],
  outputs: [],
})

const response: WireResponse = { modelName: "double", modelVersion: "1", id: "", parameters: {}, outputs: [] }

type CallResult = "pending" | "success" | `${string}: ${string}`

const start = (count: number, replicas: ReplicaOptions = {}, lookup?: () => Promise<ReadonlyArray<string>>) => {
  const timers = new VirtualTimers()
  const channels = new Map<string, ScriptedChannel>()
  const url = lookup === undefined ? Array.from({ length: count }, (_, index) => `grpc://r${index}`) : "dns:///models"
  const read: ReplicatedSettings = Result.getOrThrow(settings({ url, replicas }))
  if (read.replicas === undefined) throw new Error("no replicas")
  const channel = Effect.runSync(
    ReplicaChannel.make({
      metrics: new EffectMetrics("double", Context.empty()),
      connection: read,
      settings: read.replicas,
      open: ({ endpoint, ip }) => {
        const channel = new ScriptedChannel()
        channels.set(ip ?? endpoint.host, channel)
        return channel
      },
      timers,
      ...(lookup && { lookup }),
    }),
  )
  /** Calls under way, with the name of their replica, in the order of their replicas. */
  const open = (): ReadonlyArray<readonly [string, ScriptedCall]> =>
    [...channels].flatMap(([name, { calls }]) =>
      calls.filter((call) => !call.isCancelled && !ended.has(call)).map((call) => [name, call] as const),
    )
  const ended = new Set<ScriptedCall>()
  const infer = (parameters?: Parameters, timeoutMs?: number) => {
    const call: { result: CallResult; cancel: () => void } = { result: "pending", cancel: () => {} }
    call.cancel = channel.infer(request(parameters), timeoutMs, (outcome) => {
      call.result = Result.isSuccess(outcome) ? "success" : `${outcome.failure._tag}: ${outcome.failure.message}`
    })
    return call
  }
  const only = () => {
    const [first, ...others] = open()
    if (first === undefined || others.length > 0) throw new Error(`${others.length + 1} calls are open`)
    return first
  }
  /** Ends the only open call. Returns the name of its replica. */
  const fail = (error: InferenceError, cause?: FailureCause) => {
    const [name, call] = only()
    ended.add(call)
    call.reply(Result.fail(error), cause)
    return name
  }
  const succeed = () => {
    const [name, call] = only()
    ended.add(call)
    call.reply(Result.succeed(response))
    return name
  }
  return { timers, channel, channels, open, infer, fail, succeed, only, ended }
}

const unreachable = new Errors.Unavailable({ message: "cannot reach r:8001" })
const lost = new Errors.Unavailable({ message: "the connection to r:8001 was lost" })
const stopping = new Errors.Unavailable({ message: "stopping" })
const full = new Errors.QueueFull({ message: "full", retryAfter: 200 })

it("a request that was not sent goes to each other replica once, without a pause", () => {
  const { infer, fail, succeed } = start(5)
  const call = infer()
  const tried = [1, 2, 3, 4].map(() => fail(unreachable, "unsent"))
  tried.push(succeed())
  expect(tried.toSorted()).toEqual(["r0", "r1", "r2", "r3", "r4"])
  expect(call.result).toBe("success")
})

it("a replica that cannot be reached receives no further calls, until it returns", () => {
  const { infer, fail, succeed, timers } = start(2)
  infer()
  const dead = fail(unreachable, "unsent")
  succeed()
  const receivers = () => {
    const names = Array.from({ length: 100 }, () => {
      infer()
      return succeed()
    })
    return new Set(names)
  }
  expect(receivers().has(dead)).toBe(false)
  timers.advance(12_000)
  expect(receivers().has(dead)).toBe(true)
})

it.each<[string, InferenceError, FailureCause | undefined]>([
  ["whose connection was lost", lost, "lost"],
  ["of a server that is unavailable", stopping, undefined],
  ["of a full server without a time", new Errors.QueueFull({ message: "full" }), undefined],
])("a request %s is sent again only if it is idempotent", (_, error, cause) => {
  const once = start(3)
  const call = once.infer()
  once.fail(error, cause)
  expect(call.result).toBe(`${error._tag}: ${error.message}`)
  const twice = start(3, { idempotent: true })
  const repeated = twice.infer()
  const first = twice.fail(error, cause)
  expect(twice.succeed()).not.toBe(first)
  expect(repeated.result).toBe("success")
})

it.each<[string, InferenceError, FailureCause | undefined]>([
  ["the model has failed", new Errors.ExecutionFailed({ message: "no" }), undefined],
  ["the request is invalid", new Errors.InvalidRequest({ message: "no" }), undefined],
  ["the server forbids it", stopping, "final"],
])("an idempotent request is not sent again if %s", (_, error, cause) => {
  const { infer, fail } = start(3, { idempotent: true })
  const call = infer()
  fail(error, cause)
  expect(call.result).toBe(`${error._tag}: ${error.message}`)
})

it("a request that a server refuses with a time goes to another replica at once", () => {
  const { infer, fail, succeed, timers, open } = start(2)
  const call = infer()
  const busy = fail(full)
  const other = succeed()
  expect([call.result, other === busy]).toEqual(["success", false])
  // The server receives no calls for that time.
  for (let count = 0; count < 20; count++) {
    infer()
    expect(succeed()).toBe(other)
  }
  timers.advance(200)
  for (let count = 0; count < 10; count++) infer()
  expect(new Set(open().map(([name]) => name)).size).toBe(2)
})

it("waits as long as the servers ask if all have refused", () => {
  const { infer, fail, succeed, timers, open } = start(2, { attempts: 4 })
  const call = infer()
  fail(full)
  fail(full)
  expect(open()).toEqual([])
  timers.advance(199)
  expect(open()).toEqual([])
  timers.advance(200)
  succeed()
  expect(call.result).toBe("success")
})

it("does not wait beyond the deadline", () => {
  const { infer, fail, timers } = start(2)
  const call = infer({}, 150)
  fail(full)
  fail(full)
  expect([call.result, timers.size]).toEqual(["QueueFull: full", 0])
})

it("all attempts share one deadline", () => {
  const { infer, fail, only, timers } = start(3, { idempotent: true })
  infer({}, 1_000)
  expect(only()[1].timeoutMs).toBe(1_000)
  timers.advance(400)
  fail(lost, "lost")
  expect(only()[1].timeoutMs).toBe(600)
})

it("makes at most so many attempts", () => {
  const { infer, fail, open } = start(5, { idempotent: true, attempts: 2 })
  const call = infer()
  fail(lost, "lost")
  fail(lost, "lost")
  expect([call.result, open()]).toEqual([`Unavailable: ${lost.message}`, []])
})

it("the budget limits retries of all calls", () => {
  const { infer, fail, succeed, open } = start(3, { idempotent: true, retryBudget: { tokens: 10 } })
  let retried = 0
  for (let count = 0; count < 10; count++) {
    infer()
    fail(lost, "lost")
    if (open().length === 0) continue
    retried += 1
    succeed()
  }
  // Of ten tokens, and a tenth for each success.
  expect(retried).toBe(5)
})

it("calls that reach their deadlines eject a replica", () => {
  const { infer, only, succeed, timers, channels } = start(2)
  const hangs = "r0"
  let expired = 0
  for (let count = 0; count < 1_000 && expired < 5; count++) {
    const call = infer({}, 100)
    if (only()[0] !== hangs) {
      succeed()
      continue
    }
    timers.advance(100)
    call.cancel()
    expired += 1
  }
  expect(expired).toBe(5)
  const before = channels.get(hangs)?.calls.length
  for (let count = 0; count < 100; count++) {
    infer()
    succeed()
  }
  expect(channels.get(hangs)?.calls.length).toBe(before)
})

it("a hedge goes to another replica after its time, and the slower attempt is cancelled", () => {
  const { infer, open, timers, ended } = start(3, { idempotent: true, hedge: { after: 50 } })
  const call = infer()
  const [[slow, first] = ["", undefined]] = open()
  timers.advance(49)
  expect(open().length).toBe(1)
  timers.advance(1)
  const hedge = open().find(([name]) => name !== slow)
  if (hedge === undefined) throw new Error("no hedge")
  ended.add(hedge[1])
  hedge[1].reply(Result.succeed(response))
  expect([call.result, first?.isCancelled, timers.size]).toEqual(["success", true, 0])
  // Harmless.
  first?.reply(Result.succeed(response))
})

it("a hedged call fails only when all its attempts have failed", () => {
  const { infer, open, timers, ended } = start(2, { idempotent: true, hedge: { after: 50 }, attempts: 2 })
  const call = infer()
  timers.advance(50)
  const [one, two] = open().map(([, scripted]) => scripted)
  for (const scripted of [one, two]) {
    expect(call.result).toBe("pending")
    if (scripted !== undefined) ended.add(scripted)
    scripted?.reply(Result.fail(lost), "lost")
  }
  expect(call.result).toBe(`Unavailable: ${lost.message}`)
})

it("hedges stop when the budget is used up", () => {
  const { infer, open, timers } = start(3, { idempotent: true, hedge: { after: 50 }, retryBudget: { tokens: 10 } })
  for (let count = 0; count < 20; count++) infer()
  timers.advance(50)
  expect(open().length).toBe(25)
})

it("a hedge that finds no replica is sent when there is one", () => {
  const { infer, open, channels, timers } = start(2, { idempotent: true, hedge: { after: 50 }, health: true })
  infer()
  const [[first] = [""]] = open()
  for (const [name, { checks }] of channels) checks[0]?.(name === first ? "ready" : "notReady")
  timers.advance(500)
  expect(open().length).toBe(1)
  timers.advance(600)
  for (const { checks } of channels.values()) checks.at(-1)?.("ready")
  timers.advance(100)
  expect(open().length).toBe(2)
})

it("a cancelled call cancels all its attempts", () => {
  const { infer, open, timers, channels } = start(3, { idempotent: true, hedge: { after: 50 } })
  const call = infer()
  timers.advance(50)
  expect(open().length).toBe(2)
  call.cancel()
  expect([open(), timers.size]).toEqual([[], 0])
  expect([...channels.values()].flatMap(({ calls }) => calls.map(({ isCancelled }) => isCancelled))).toEqual([
    true,
    true,
  ])
})

it("an unhealthy replica receives no calls, and its idempotent calls go to another one, too", () => {
  const { infer, open, channels, timers } = start(2, { idempotent: true, health: true })
  const call = infer()
  const [[hung] = [""]] = open()
  for (const [name, { checks }] of channels) checks[0]?.(name === hung ? "notReady" : "ready")
  const other = open().find(([name]) => name !== hung)
  other?.[1].reply(Result.succeed(response))
  expect(call.result).toBe("success")
  for (let count = 0; count < 20; count++) infer()
  expect(open().every(([name, scripted]) => name !== hung || scripted.isCancelled)).toBe(true)
  timers.advance(0)
})

it("a sequence stays on its replica", () => {
  const { infer, succeed } = start(3)
  for (let id = 1n; id <= 20n; id++) {
    infer({ sequence_id: id, sequence_start: true })
    const replica = succeed()
    for (let count = 0; count < 5; count++) {
      infer({ sequence_id: id })
      expect(succeed()).toBe(replica)
    }
  }
})

it.each<[string, FailureCause]>([
  ["cannot be reached", "unsent"],
  ["loses its connection", "lost"],
])("a sequence whose replica %s is lost, also if it is idempotent", (_, cause) => {
  const { infer, fail, succeed, open } = start(3, { idempotent: true })
  infer({ sequence_id: 7n, sequence_start: true })
  const replica = succeed()
  const call = infer({ sequence_id: 7n })
  fail(lost, cause)
  expect(call.result).toBe(
    `SequenceNotFound: the sequence was on the replica ${replica}:8001, which is lost: ${lost.message}`,
  )
  expect(open()).toEqual([])
})

it("a numbered request of a sequence is sent to its replica again, which is lost after three attempts", () => {
  const { infer, fail, succeed, timers } = start(3)
  const numbered = { sequence_id: 7n, sequence_gaps: true }
  infer({ ...numbered, sequence_number: 1n, sequence_start: true })
  const replica = succeed()
  const call = infer({ ...numbered, sequence_number: 2n })
  expect(fail(lost, "lost")).toBe(replica)
  timers.advance(1000)
  expect([succeed(), call.result]).toEqual([replica, "success"])
  const last = infer({ ...numbered, sequence_number: 3n })
  for (const cause of ["lost", "unsent", "unsent"] as const) {
    expect(fail(lost, cause)).toBe(replica)
    timers.advance(1000)
  }
  expect(last.result).toContain(`SequenceNotFound: the sequence was on the replica ${replica}:8001, which is lost`)
})

it("the first request of a sequence may choose another replica", () => {
  const { infer, fail, succeed } = start(3)
  const call = infer({ sequence_id: 7n, sequence_start: true })
  const dead = fail(unreachable, "unsent")
  const replica = succeed()
  expect([call.result, replica === dead]).toEqual(["success", false])
  for (let count = 0; count < 5; count++) {
    infer({ sequence_id: 7n })
    expect(succeed()).toBe(replica)
  }
})

it("a request of a sequence that its server refuses for now is sent there again", () => {
  const { infer, fail, succeed, timers } = start(3)
  infer({ sequence_id: 7n, sequence_start: true })
  const replica = succeed()
  const call = infer({ sequence_id: 7n })
  expect(fail(full)).toBe(replica)
  timers.advance(1_000)
  expect([succeed(), call.result]).toEqual([replica, "success"])
})

it("a stream begins again on another replica only before its first response", () => {
  const { channel, open, ended } = start(2, { idempotent: true })
  const events: Array<string> = []
  const { flow } = channel.stream(
    request(),
    undefined,
    {
      response: () => events.push("response"),
      end: (outcome) => events.push(Result.isSuccess(outcome) ? "end" : outcome.failure.message),
    },
    { name: "double", signature: { inputs: [], outputs: [] }, maxBatchSize: 0 },
  )
  flow(true)
  const [first] = open().map(([, call]) => call)
  if (first !== undefined) ended.add(first)
  first?.receiver.end(Result.fail(lost), "lost")
  const [second] = open().map(([, call]) => call)
  expect([events, second?.isPaused]).toEqual([[], true])
  second?.receiver.response(response)
  if (second !== undefined) ended.add(second)
  second?.receiver.end(Result.fail(lost), "lost")
  expect([events, open()]).toEqual([["response", lost.message], []])
})

it("follows the addresses of a name: new ones receive calls, and removed ones end theirs", async () => {
  let ips = ["10.0.0.1", "10.0.0.2"]
  const { infer, open, channels, timers, ended } = start(0, {}, () => Promise.resolve(ips))
  const settle = async () => {
    for (let turn = 0; turn < 10; turn++) await Promise.resolve()
  }
  const early = infer()
  expect(open()).toEqual([])
  await settle()
  for (let count = 0; count < 20; count++) infer()
  expect(new Set(open().map(([name]) => name))).toEqual(new Set(ips))
  ips = ["10.0.0.2", "10.0.0.3"]
  timers.advance(30_000)
  await settle()
  const removed = channels.get("10.0.0.1")
  const before = removed?.calls.length
  for (let count = 0; count < 20; count++) infer()
  expect(removed?.calls.length).toBe(before)
  expect(channels.get("10.0.0.3")?.calls.length).toBeGreaterThan(0)
  expect(removed?.isClosed).toBe(false)
  for (const [, call] of open()) {
    ended.add(call)
    call.reply(Result.succeed(response))
  }
  expect([early.result, removed?.isClosed, channels.get("10.0.0.2")?.isClosed]).toEqual(["success", true, false])
})

it("keeps the addresses when a lookup fails", async () => {
  let found: Promise<ReadonlyArray<string>> = Promise.resolve(["10.0.0.1"])
  const { infer, succeed, timers } = start(0, {}, () => found)
  const first = infer()
  for (let turn = 0; turn < 10; turn++) await Promise.resolve()
  succeed()
  found = Promise.reject(new Error("ENOTFOUND"))
  timers.advance(30_000)
  for (let turn = 0; turn < 10; turn++) await Promise.resolve()
  const second = infer()
  expect([succeed(), first.result, second.result]).toEqual(["10.0.0.1", "success", "success"])
})

it("calls that wait for the first lookup fail with it", async () => {
  const { infer } = start(0, {}, () => Promise.reject(new Error("getaddrinfo ENOTFOUND models")))
  const call = infer()
  for (let turn = 0; turn < 10; turn++) await Promise.resolve()
  expect(call.result).toBe("Unavailable: cannot look up models: getaddrinfo ENOTFOUND models")
})

it("counts attempts by reason and outcome, with its labels in the order of their names", () => {
  const { infer, fail, succeed } = start(2)
  infer()
  fail(unreachable, "unsent")
  succeed()
  const labels = Effect.runSync(Metric.snapshot)
    .filter(({ id }) => id === "nereid_client_attempts")
    .map(({ attributes = {} }) => attributes)
  const found = labels.map(({ reason, outcome }) => `${String(reason)} ${String(outcome)}`)
  expect(found).toEqual(expect.arrayContaining(["first failure", "retry success"]))
  for (const names of labels.map(Object.keys)) expect(names).toEqual(names.toSorted())
})

it("closes the connections of all replicas", async () => {
  const { channel, channels } = start(3)
  await channel.close()
  expect([...channels.values()].map(({ isClosed }) => isClosed)).toEqual([true, true, true])
})
