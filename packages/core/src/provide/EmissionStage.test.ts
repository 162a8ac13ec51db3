/** Responses that wait for a reader, in front of a request whose responses the test makes. */
import { expect, it } from "@effect/vitest"
import { Effect, Exit, Latch, Result } from "effect"
import { constVoid } from "effect/Function"
import { type InferenceError, Unavailable } from "../error/InferenceError.ts"
import type { Emit, Request } from "../request/Request.ts"
import { request } from "../scheduler/Scheduler.fixture.ts"
import type { Submit } from "../scheduler/SubmitPipeline.ts"
import * as EmissionStage from "./EmissionStage.ts"

/** `respond` makes responses; `events` has what the reader and the caller have received, and cancellations. */
const harness = (read: (number: unknown) => Effect.Effect<void, InferenceError>) => {
  const events: Array<string> = []
  let submitted: Request | undefined
  let settle: (outcome: Result.Result<never, InferenceError> | undefined) => void = constVoid
  const next: Submit = (request, reply) => {
    submitted = request
    settle = (failure) => reply(failure ?? Result.succeed({ outputs: [], parameters: {} }))
    return () => void events.push("request cancelled")
  }
  const emit: Emit = ({ parameters: { number } }, isLast) =>
    Effect.map(read(number), () => void events.push(`read ${String(number)}${isLast === true ? ", the last" : ""}`))
  const cancel = EmissionStage.make(Effect.runFork)(next)({ ...request(1), emit }, (outcome) => {
    events.push(Result.isSuccess(outcome) ? "reply" : outcome.failure.message)
  })
  const respond = (number: bigint, isLast = false) =>
    Effect.runSyncExit(submitted?.emit?.({ outputs: [], parameters: { number } }, isLast) ?? Effect.void)
  return { events, respond, end: (failure?: Result.Result<never, InferenceError>) => settle(failure), cancel }
}

it("a reader that keeps up has each response at once", () => {
  const { events, respond, end } = harness(() => Effect.void)
  respond(1n)
  respond(2n, true)
  expect(events).toEqual(["read 1", "read 2, the last"])
  end()
  expect(events.at(-1)).toBe("reply")
})

it.live("responses wait for a slow reader in their order, and the reply follows them", () =>
  Effect.gen(function* () {
    const open = yield* Latch.make()
    const { events, respond, end } = harness(() => open.await)
    expect([respond(1n), respond(2n, true)]).toEqual([Exit.void, Exit.void])
    end()
    expect(events).toEqual([])
    yield* open.open
    yield* Effect.repeat(Effect.yieldNow, { until: () => events.includes("reply") })
    expect(events).toEqual(["read 1", "read 2, the last", "reply"])
  }),
)

it("a failure of the request follows the responses before it", () => {
  const { events, respond, end } = harness(() => Effect.void)
  respond(1n)
  end(Result.fail(new Unavailable({ message: "stopped" })))
  expect(events).toEqual(["read 1", "stopped"])
})

it("a response beyond 10,000 that wait fails, which its request learns", () => {
  const { respond } = harness(() => Effect.never)
  // The reader has the first one.
  for (let number = 0n; number <= 10_000n; number++) expect(Exit.isSuccess(respond(number))).toBe(true)
  const error = Exit.findError(respond(10_001n))
  expect(error).toMatchObject({ success: { _tag: "QueueFull", message: "10000 responses wait for their reader" } })
})

it("a reader that fails cancels the request, whose caller has the failure", () => {
  const { events, respond, end } = harness(() => Effect.fail(new Unavailable({ message: "the reader has left" })))
  respond(1n)
  end()
  expect(events).toEqual(["request cancelled", "the reader has left"])
})

it.live("a caller that leaves cancels the request, and is read nothing more", () =>
  Effect.gen(function* () {
    const open = yield* Latch.make()
    const { events, respond, end, cancel } = harness(() => open.await)
    respond(1n)
    respond(2n)
    cancel()
    yield* open.open
    yield* Effect.yieldNow
    end()
    expect(events).toEqual(["request cancelled"])
  }),
)

it("a request with one response goes on unchanged", () => {
  const seen: Array<Request> = []
  const plain = request(1)
  EmissionStage.make(Effect.runFork)((request) => {
    seen.push(request)
    return constVoid
  })(plain, constVoid)
  expect(seen).toEqual([plain])
})
