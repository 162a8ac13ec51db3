/** Numbered requests of sequences, in front of a scheduler that executes when the test lets it. */
import { expect, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import { type InferenceError, QueueFull, SequenceNotFound } from "../error/InferenceError.ts"
import { type Parameters, type Reply, type Request } from "../request/Request.ts"
import { AlarmClock } from "../scheduler/AlarmClock.ts"
import { make as tensor } from "../tensor/TypedTensor.ts"
import { NumberedRequests } from "./NumberedRequests.ts"

const window = 16

/**
 * Requests add their input to the sum of their sequence, which `complete` replies with. `executed` has the numbers of
 * the requests, in the order of their execution.
 */
const harness = Effect.fnUntraced(function* (maxReplyBytes = 1000) {
  const sums = new Map<unknown, number>()
  const executed: Array<string> = []
  const due: Array<() => void> = []
  const refusals: Array<InferenceError> = []
  const ended = new Set<unknown>()
  const numbers = new NumberedRequests(
    {
      model: "m",
      window,
      maxWaiting: 100,
      maxWait: 1000,
      maxReplyBytes,
      keyOf: ({ inputs }) => String(inputs[0]?.data[0]),
      isLost: (id) => ended.has(id),
    },
    yield* AlarmClock.make,
  )
  const submit = numbers.before(({ inputs, parameters, emit }, reply) => {
    const { sequence_id: id, sequence_number: number, sequence_start: isStart, sequence_end: isEnd } = parameters
    const refusal = refusals.shift()
    if (refusal !== undefined || (isStart !== true && !sums.has(id))) {
      reply(Result.fail(refusal ?? new SequenceNotFound({ message: "lost", reason: "ended", idleMillis: undefined })))
      return () => expect.unreachable()
    }
    executed.push(`${String(id)}${String(number)}`)
    const sum = (isStart === true ? 0 : (sums.get(id) ?? 0)) + Number(inputs[0]?.data[0])
    sums.set(id, sum)
    if (isEnd === true) sums.delete(id)
    due.push(() => {
      reply(
        Result.succeed({
          outputs: emit === undefined ? [tensor("INT32", [1], Int32Array.of(sum))] : [],
          parameters: {},
        }),
      )
      if (isEnd === true && !sums.has(id)) numbers.over(id as string)
    })
    return () => expect.unreachable("a numbered request is not cancelled")
  })
  /** Sends a request; `answer()` is its sum or the message of its error, and undefined before. */
  const send = (
    id: string,
    number: Parameters[string],
    flags = "",
    input = Number(number),
    more: Partial<Request> = {},
  ) => {
    let answers: Array<number | string> = []
    const reply: Reply = (outcome) => {
      answers.push(Result.isSuccess(outcome) ? Number(outcome.success.outputs[0]?.data[0]) : outcome.failure.message)
    }
    const request: Request = {
      id: "",
      inputs: [tensor("INT32", [1], Int32Array.of(input))],
      rows: 1,
      parameters: {
        sequence_id: id,
        sequence_number: number,
        sequence_start: flags.includes("S"),
        sequence_end: flags.includes("E"),
        ...(flags.includes("G") && { sequence_gaps: true }),
      },
      deadline: undefined,
      ...more,
    }
    const cancel = submit(request, reply)
    const leave = () => {
      cancel()
      answers = []
    }
    return { answer: () => answers[0], count: () => answers.length, leave }
  }
  const complete = () => due.shift()?.()
  const completeAll = () => {
    while (due.length > 0) complete()
  }
  return { send, complete, completeAll, executed, numbers, ended, refusals, due }
})

it.effect("requests that arrive ahead wait for those before them", () =>
  Effect.gen(function* () {
    const { send, completeAll, executed } = yield* harness()
    const sent = [send("a", 3n, "E"), send("a", 2n), send("b", 1n, "SE"), send("a", 1n, "S")]
    expect(executed).toEqual(["b1", "a1", "a2", "a3"])
    completeAll()
    expect(sent.map(({ answer }) => answer())).toEqual([6, 3, 1, 1])
  }),
)

it.effect("numbers with gaps wait for none, are repeated once, and are refused when they are old", () =>
  Effect.gen(function* () {
    const { send, completeAll, executed, ended } = yield* harness()
    const first = send("a", 1n, "SG")
    const second = send("a", 5n, "G")
    expect(executed).toEqual(["a1", "a5"])
    const again = send("a", 5n, "G")
    completeAll()
    expect([first, second, again, send("a", 5n, "G")].map(({ answer }) => answer())).toEqual([1, 6, 6, 6])
    expect(send("a", 4n, "G").answer()).toContain("was answered before, and only the last reply is kept: 6 is expected")
    // A START may have any number, after one that was lost.
    send("a", 9n, "SG")
    completeAll()
    expect(executed).toEqual(["a1", "a5", "a9"])
    expect(send("b", 3n, "G").answer()).toBe("lost")
    ended.add("c")
    expect(send("c", 3n, "G").answer()).toBe("lost")
    expect(executed).toHaveLength(3)
  }),
)

it.effect("requests of all sequences that wait have a limit, which a refusal names", () =>
  Effect.gen(function* () {
    const { send, completeAll } = yield* harness()
    for (let sequence = 0; sequence < 10; sequence++) {
      for (let number = 2n; number <= 11n; number++) send(`s${sequence}`, number)
    }
    expect(send("s0", 12n).answer()).toBe(
      "[request id: <id_unknown>] Exceeds maximum queue size: 100 requests of model 'm' wait for an earlier " +
        "sequence_number, the maximum. Retry once the earlier request has been sent",
    )
    send("s0", 1n, "S")
    completeAll()
    expect(send("s1", 12n).answer()).toBeUndefined()
  }),
)

it.effect("the last request is answered again without an execution, an older one is refused", () =>
  Effect.gen(function* () {
    const { send, completeAll, executed } = yield* harness()
    send("a", 1n, "S")
    const second = send("a", 2n)
    const joined = send("a", 2n)
    completeAll()
    expect([second.answer(), joined.answer(), send("a", 2n).answer()]).toEqual([3, 3, 3])
    expect(send("a", 1n, "S").answer()).toBe(
      "[request id: <id_unknown>] sequence_number 1 of sequence a of model 'm' was answered before, and only the last " +
        "reply is kept: 3 is expected next",
    )
    expect(send("a", 2n, "", 7).answer()).toContain("was sent before with other inputs")
    expect(executed).toEqual(["a1", "a2"])
  }),
)

it.effect("a request beyond the window is refused", () =>
  Effect.gen(function* () {
    const { send, completeAll } = yield* harness()
    send("a", 1n, "S")
    completeAll()
    expect(send("a", 18n).answer()).toBeUndefined()
    expect(send("a", 19n).answer()).toBe(
      "[request id: <id_unknown>] sequence_number 19 of sequence a of model 'm' is too far ahead: 2 is expected next, " +
        "and at most the 16 numbers after it may wait",
    )
  }),
)

it.effect.each([
  [0n, "", "must be an integer of at least 1, but 0"],
  [-3n, "", "must be an integer of at least 1, but -3"],
  ["two", "", "must be an integer of at least 1, but two"],
  [1.5, "", "must be an integer of at least 1, but 1.5"],
  [true, "", "must be an integer of at least 1, but true"],
  [2n, "S", "must be 1 with the START flag, but 2"],
] as const)("a wrong number is refused: %s", ([number, flags, text]) =>
  Effect.gen(function* () {
    const { send } = yield* harness()
    expect(send("a", number, flags, 1).answer()).toContain(`parameter 'sequence_number' ${text} was given`)
  }),
)

it.effect("a request whose caller leaves is executed, and answers the retry", () =>
  Effect.gen(function* () {
    const { send, completeAll, executed } = yield* harness()
    send("a", 1n, "S").leave()
    const retried = send("a", 1n, "S")
    completeAll()
    expect(retried.answer()).toBe(1)
    send("a", 2n, "E").leave()
    completeAll()
    expect(send("a", 2n, "E").answer()).toBe(3)
    expect(executed).toEqual(["a1", "a2"])
  }),
)

it.effect("a START after the END begins anew, unless it repeats the only request", () =>
  Effect.gen(function* () {
    const { send, completeAll, executed } = yield* harness()
    send("a", 1n, "SE")
    completeAll()
    expect(send("a", 1n, "SE").answer()).toBe(1)
    const other = send("a", 1n, "S", 5)
    completeAll()
    expect(other.answer()).toBe(5)
    expect(executed).toEqual(["a1", "a1"])
  }),
)

it.effect("a request that is refused at once may be sent again under its number", () =>
  Effect.gen(function* () {
    const { send, completeAll, refusals, executed } = yield* harness()
    refusals.push(new QueueFull({ message: "full" }))
    const second = send("a", 2n)
    expect(send("a", 1n, "S").answer()).toBe("full")
    send("a", 1n, "S")
    completeAll()
    expect(second.answer()).toBe(3)
    expect(executed).toEqual(["a1", "a2"])
  }),
)

it.effect("a request waits for earlier ones at most for the time limit, or for its deadline", () =>
  Effect.gen(function* () {
    const { send } = yield* harness()
    send("a", 1n, "S")
    const waiting = send("a", 3n)
    const hurried = send("a", 4n, "", 4, { deadline: 400 })
    const lost = send("b", 2n)
    yield* TestClock.adjust(401)
    const late = (number: number) =>
      `[request id: <id_unknown>] sequence_number ${number} of sequence a of model 'm' has waited too long for number 2`
    expect([waiting.answer(), hurried.answer()]).toEqual([undefined, late(4)])
    yield* TestClock.adjust(600)
    expect([waiting.answer(), lost.answer()]).toEqual([late(3), "lost"])
  }),
)

it.effect("requests that wait for a sequence that is over fail as the scheduler tells", () =>
  Effect.gen(function* () {
    const { send, numbers, completeAll, ended } = yield* harness()
    send("a", 1n, "S")
    send("a", 2n, "E")
    const after = send("a", 4n)
    completeAll()
    expect(after.answer()).toBe("lost")
    ended.add("b")
    expect(send("b", 5n).answer()).toBe("lost")
    send("c", 1n, "S")
    const waiting = send("c", 3n)
    numbers.stop()
    expect(waiting.answer()).toContain("Server is stopping")
  }),
)

it.effect("replies beyond the memory limit and those of streams are not kept", () =>
  Effect.gen(function* () {
    const { send, completeAll } = yield* harness(4)
    send("a", 1n, "S")
    send("b", 1n, "S")
    completeAll()
    expect(send("a", 1n, "S").answer()).toBe(1)
    expect(send("b", 1n, "S").answer()).toContain("its reply was not kept")
    send("a", 2n, "", 2, { emit: () => Effect.void })
    completeAll()
    expect(send("a", 2n).answer()).toContain("its reply was not kept")
  }),
)

it.effect("requests without a number are passed on", () =>
  Effect.gen(function* () {
    const { numbers } = yield* harness()
    const passed: Array<Request> = []
    const request = { id: "", inputs: [], rows: 1, parameters: { sequence_id: "a" }, deadline: undefined }
    const reply: Reply = () => {}
    numbers.before((one) => {
      passed.push(one)
      return () => {}
    })(request, reply)
    expect(passed).toEqual([request])
    expect(passed[0]).toBe(request)
  }),
)

/** An order in which no number is more than 15 behind its place, with retries and completions between. */
const program = fc.integer({ min: 1, max: 60 }).chain((length) =>
  fc.array(fc.record({ jitter: fc.nat(15), leaves: fc.boolean(), retries: fc.nat(2), completions: fc.nat(3) }), {
    minLength: length,
    maxLength: length,
  }),
)

it.effect("any order within the window, with retries and lost connections, executes each request once, in order", () =>
  Effect.gen(function* () {
    const { send, complete, completeAll, executed, due } = yield* harness(1e6)
    let runs = 0
    fc.assert(
      fc.property(program, (steps) => {
        const id = `run${runs++}.`
        executed.length = 0
        const flags = (number: number) => `${number === 1 ? "S" : ""}${number === steps.length ? "E" : ""}`
        const sums: Array<[number, ReturnType<typeof send>]> = []
        const repeated: Array<[number, ReturnType<typeof send>]> = []
        const arrivals = steps
          .map((step, index) => ({ ...step, number: index + 1 }))
          .toSorted((a, b) => a.number + a.jitter - (b.number + b.jitter))
        for (const { number, leaves, retries, completions } of arrivals) {
          const first = send(id, BigInt(number), flags(number))
          if (leaves) {
            first.leave()
            sums.push([number, send(id, BigInt(number), flags(number))])
          } else sums.push([number, first])
          for (let index = 0; index < completions; index++) complete()
          // After the END is answered, the id begins another sequence.
          const isOver = executed.length === steps.length && due.length === 0
          for (let index = 0; index < (number === 1 && isOver ? 0 : retries); index++) {
            repeated.push([number, send(id, BigInt(number), flags(number))])
          }
        }
        completeAll()
        expect(executed).toEqual(steps.map((_, index) => `${id}${index + 1}`))
        const sum = (number: number) => (number * (number + 1)) / 2
        for (const [number, { answer, count }] of repeated) {
          expect(count()).toBe(1)
          if (typeof answer() === "number") expect(answer()).toBe(sum(number))
          else expect(answer()).toContain("was answered before")
        }
        for (const [number, { answer, count }] of sums) {
          expect(count()).toBe(1)
          expect(answer()).toBe(sum(number))
        }
      }),
    )
  }),
)
