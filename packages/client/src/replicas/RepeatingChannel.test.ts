import { Errors } from "@nereid/core"
import type { Parameters } from "@nereid/core/internal/request/Request"
import type { WireResponse } from "@nereid/core/internal/wire/WireRequest"
import { Result } from "effect"
import { expect, it } from "vitest"
import type { FailureCause } from "../channel/Channel.ts"
import * as RepeatingChannel from "./RepeatingChannel.ts"
import { ScriptedChannel } from "./ScriptedChannel.fixture.ts"
import { VirtualTimers } from "./VirtualTimers.fixture.ts"

const response: WireResponse = { modelName: "m", modelVersion: "1", id: "", parameters: {}, outputs: [] }

const lost = new Errors.Unavailable({ message: "the connection was lost" })

const numbered: Parameters = { sequence_id: 7n, sequence_number: 2n, sequence_gaps: true }

const start = () => {
  const scripted = new ScriptedChannel()
  const timers = new VirtualTimers()
  const channel = RepeatingChannel.make(scripted, timers)
  const outcomes: Array<string> = []
  const infer = (parameters = numbered, timeoutMs?: number) =>
    channel.infer(
      { modelName: "m", modelVersion: "", id: "", parameters, inputs: [], outputs: [] },
      timeoutMs,
      (outcome) => outcomes.push(Result.isSuccess(outcome) ? "success" : outcome.failure.message),
    )
  const fail = (cause?: FailureCause) => scripted.calls.at(-1)?.reply(Result.fail(lost), cause)
  const succeed = () => scripted.calls.at(-1)?.reply(Result.succeed(response))
  return { scripted, timers, infer, fail, succeed, outcomes }
}

it("a numbered request whose connection is lost is sent again, three times at most", () => {
  const { scripted, timers, infer, fail, succeed, outcomes } = start()
  infer()
  fail("lost")
  expect([scripted.calls.length, outcomes]).toEqual([1, []])
  timers.advance(1000)
  succeed()
  expect(outcomes).toEqual(["success"])
  expect(scripted.calls.map(({ wire }) => wire.parameters)).toEqual([numbered, numbered])
  infer()
  for (const cause of ["lost", "unsent", "lost"] as const) {
    fail(cause)
    timers.advance(1000)
  }
  expect([scripted.calls.length, outcomes]).toEqual([5, ["success", lost.message]])
})

it.each<[string, Parameters, FailureCause | undefined]>([
  ["without numbers", { sequence_id: 7n }, "lost"],
  ["that its caller numbers, without gaps", { sequence_id: 7n, sequence_number: 2n }, "lost"],
  ["that the server has refused", numbered, undefined],
  ["that must not be repeated", numbered, "final"],
])("a request %s is not sent again", (_, parameters, cause) => {
  const { scripted, timers, infer, fail, outcomes } = start()
  infer(parameters)
  fail(cause)
  timers.advance(10_000)
  expect([scripted.calls.length, outcomes]).toEqual([1, [lost.message]])
})

it("a client that has lost many connections in a row sends none of its requests again", () => {
  const { scripted, infer, fail, outcomes, timers } = start()
  for (let count = 0; count < 100; count++) {
    infer()
    while (outcomes.length === count) {
      fail("lost")
      timers.advance(1000)
    }
  }
  // 49 failures may be followed by another attempt, two of three in each request.
  expect(scripted.calls).toHaveLength(133)
})

it("a deadline ends the attempts, and each attempt has the time that is left", () => {
  const { scripted, timers, infer, fail, outcomes } = start()
  infer(numbered, 1000)
  timers.advance(500)
  fail("lost")
  timers.advance(200)
  const remaining = scripted.calls[1]?.timeoutMs
  expect(remaining).toBeGreaterThan(300)
  expect(remaining).toBeLessThanOrEqual(500)
  timers.advance(299.999)
  fail("lost")
  expect([scripted.calls.length, outcomes]).toEqual([2, [lost.message]])
})

it("a caller that leaves cancels the attempt, and the pause before the next one", () => {
  const { scripted, timers, infer, fail, outcomes } = start()
  const cancel = infer()
  cancel()
  expect(scripted.calls[0]?.isCancelled).toBe(true)
  const other = infer()
  fail("lost")
  other()
  timers.advance(10_000)
  expect([scripted.calls.length, outcomes, timers.size]).toEqual([2, [], 0])
})
