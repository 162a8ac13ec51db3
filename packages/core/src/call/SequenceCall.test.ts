import { Effect, Result } from "effect"
import { expect, it } from "vitest"
import { InvalidRequest, type InferenceError, QueueFull, SequenceNotFound } from "../error/InferenceError.ts"
import { noParameters, type Parameters, type Reply, type Request } from "../request/Request.ts"
import type { CallableModel } from "../running/CallableModel.ts"
import { maxWaiting, SequenceCall } from "./SequenceCall.ts"
import type { SessionOptions } from "./Session.ts"

const request: Request = { id: "", inputs: [], rows: 1, parameters: noParameters, deadline: undefined }

/** A session of a server whose replies the test gives. */
const opened = (options: SessionOptions = {}) => {
  const sent: Array<{ readonly parameters: Parameters; readonly reply: Reply; isCancelled: boolean }> = []
  const model: CallableModel = {
    decoupled: false,
    emits: false,
    submit: ({ parameters }, reply) => {
      const one = { parameters, reply, isCancelled: false }
      sent.push(one)
      return () => (one.isCancelled = true)
    },
  }
  const sequence = new SequenceCall(
    { description: { name: "m", signature: { inputs: [], outputs: [] } }, reachedBy: () => ({ calls: model }) },
    { id: "one", ...options },
  )
  const outcomes: Array<string> = []
  const messages: Array<string> = []
  const send = (isEnd = false) =>
    sequence.submit(model, request, isEnd, (outcome) => {
      outcomes.push(Result.isSuccess(outcome) ? "ok" : describe(outcome.failure))
      if (Result.isFailure(outcome)) messages.push(outcome.failure.message)
    })
  const reply = (index: number, error?: InferenceError) =>
    sent[index]?.reply(error === undefined ? Result.succeed({ outputs: [], parameters: {} }) : Result.fail(error))
  return { sent, send, reply, outcomes, messages, sequence }
}

const describe = (error: InferenceError) =>
  error._tag === "SequenceNotFound" ? `${error._tag} ${error.reason}` : error._tag

it("sends a request after the one before it, and marks the first and the last", () => {
  const { sent, send, reply, outcomes } = opened()
  send()
  send()
  send(true)
  expect(sent.map(({ parameters }) => parameters)).toEqual([{ sequence_id: "one", sequence_start: true }])
  reply(0)
  reply(1)
  reply(2)
  expect(sent.slice(1).map(({ parameters }) => parameters)).toEqual([
    { sequence_id: "one" },
    { sequence_id: "one", sequence_end: true },
  ])
  send()
  expect(outcomes).toEqual(["ok", "ok", "ok", "SequenceNotFound ended"])
})

it("numbers its requests for retries, and gives its limit of idle time until it has begun", () => {
  const { sent, send, reply } = opened({ retries: true, maxIdle: "2 seconds" })
  send()
  reply(0, new QueueFull({ message: "full" }))
  send()
  reply(1)
  send(true)
  const numbered = { sequence_id: "one", sequence_gaps: true }
  const first = { ...numbered, sequence_start: true, sequence_max_idle: 2_000_000n }
  expect(sent.map(({ parameters }) => parameters)).toEqual([
    { ...first, sequence_number: 1n },
    { ...first, sequence_number: 2n },
    { ...numbered, sequence_end: true, sequence_number: 3n },
  ])
})

it("refuses a call while 1,024 others wait, and takes the next one once there is room", () => {
  const { sent, send, reply, outcomes } = opened()
  for (let call = 0; call < 1 + maxWaiting; call++) send()
  send()
  expect(outcomes).toEqual(["QueueFull"])
  reply(0)
  send()
  expect(outcomes).toEqual(["QueueFull", "ok"])
  expect(sent).toHaveLength(2)
})

it("starts again after a first request that was refused or cancelled", () => {
  const { sent, send, reply, outcomes } = opened()
  send()
  reply(0, new QueueFull({ message: "full" }))
  const cancel = send()
  const cancelWaiting = send()
  send()
  cancelWaiting()
  cancel()
  expect(sent.map(({ parameters, isCancelled }) => [parameters["sequence_start"], isCancelled])).toEqual([
    [true, false],
    [true, true],
    [true, false],
  ])
  reply(2)
  expect(outcomes).toEqual(["QueueFull", "ok"])
})

const noStart =
  "inference request for sequence one to model 'm' must specify the START flag on the first request of the sequence"

it.each([
  [{ reason: "expired", idleMillis: 1500 }, "it was idle for 1500 ms"],
  [{ reason: "expired" }, "it was idle for too long"],
  [{ reason: "ended" }, "its sequence has ended"],
  [{ reason: "cancelled" }, "a request of it that waited was cancelled, or timed out"],
  [{ reason: "failed" }, "the instance that had it has stopped"],
  [{ reason: "tooLarge" }, "its state exceeded a limit"],
  [{ reason: "reloaded" }, "its model was loaded again"],
  [{ reason: "moved" }, "it has moved to another server"],
  [{ reason: "neverStarted" }, "the server does not know it"],
  [{}, "the server does not know it"],
] as const)("says why its sequence is over, in place of a missing START: %o", (loss, cause) => {
  const { send, reply, messages } = opened()
  send()
  reply(0)
  send()
  reply(1, new SequenceNotFound({ message: noStart, ...loss }))
  send()
  const message = `the session of model 'm' is over: ${cause}`
  expect(messages).toEqual([message, message])
})

it("keeps the text of an error that names another cause", () => {
  const { send, reply, messages } = opened()
  send()
  reply(0)
  send()
  reply(1, new SequenceNotFound({ message: "the replica is lost", reason: "failed" }))
  expect(messages).toEqual(["the replica is lost"])
})

it.each([0n, -5n, 2n ** 64n, "", "é".repeat(65)])("refuses the id %o, which no sequence may have", (id) => {
  expect(() => opened({ id })).toThrow("The id of a session is from 1 to 2^64 - 1, or a text of 1 to 128 bytes, not ")
})

it.each([1n, 2n ** 64n - 1n, "é".repeat(64)])("takes the id %o", (id) => {
  expect(opened({ id }).sequence.id).toBe(id)
})

it("goes on after an end that was refused, and ends the sequence when it closes", async () => {
  const { sent, send, reply, outcomes, sequence } = opened()
  send()
  reply(0)
  send(true)
  reply(1, new QueueFull({ message: "full" }))
  send(true)
  reply(2, new QueueFull({ message: "full" }))
  expect(outcomes).toEqual(["ok", "QueueFull", "QueueFull"])
  const closed = Effect.runPromise(sequence.close)
  expect(sent[3]?.parameters).toEqual({ sequence_id: "one", sequence_end: true, sequence_close: true })
  reply(3)
  await closed
  send()
  expect(outcomes.at(-1)).toBe("SequenceNotFound ended")
})

it("understands a server of Triton that has lost the sequence", () => {
  const { sent, send, reply, outcomes } = opened()
  send()
  reply(0)
  send()
  const rule = "must specify the START flag on the first request of the sequence"
  reply(1, new InvalidRequest({ message: `inference request for sequence 1 to model 'm' ${rule}` }))
  send()
  expect(outcomes).toEqual(["ok", "SequenceNotFound undefined", "SequenceNotFound undefined"])
  expect(sent).toHaveLength(2)
})

it("ends the sequence behind its requests when it closes, and sends nothing if nothing was sent", async () => {
  const { sent, send, reply, sequence } = opened()
  send()
  const closed = Effect.runPromise(sequence.close)
  expect(sent).toHaveLength(1)
  reply(0)
  expect(sent[1]?.parameters).toEqual({ sequence_id: "one", sequence_end: true, sequence_close: true })
  reply(1)
  await closed
  const unused = opened()
  await Effect.runPromise(unused.sequence.close)
  expect(unused.sent).toEqual([])
})
