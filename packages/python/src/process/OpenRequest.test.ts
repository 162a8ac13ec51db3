/** One request of a model process, whose reader takes responses when the test says so. */
import { describe, expect, it } from "vitest"
import { Tensor } from "@nereid/core"
import { Unavailable } from "@nereid/core/Errors"
import type { Response } from "@nereid/core/internal/request/Request"
import { Effect, Result } from "effect"
import { OpenRequest } from "./OpenRequest.ts"

const response = (number: number): Response => ({ outputs: [], parameters: { number: BigInt(number) } })

/** `events` has what the reader takes, and what the process and the caller learn. */
const harness = (takesErrors = false, hold?: (bytes: number) => void) => {
  const events: Array<string> = []
  let resume: ((exit: Effect.Effect<void, Unavailable>) => void) | undefined
  const request = new OpenRequest({
    request: {
      id: "",
      inputs: [],
      rows: 1,
      parameters: {},
      deadline: undefined,
      takesErrors,
      ...(hold && { hold }),
      emit: ({ parameters, error }) =>
        Effect.callback((next) => {
          events.push(error?.message ?? String(parameters["number"]))
          resume = next
          return Effect.sync(() => void events.push("interrupted"))
        }),
    },
    decoupled: true,
    fork: Effect.runFork,
    onCancel: () => void events.push("cancel"),
    give: (count) => void events.push(`give ${count}`),
    onWait: (waits) => void events.push(waits ? "waits" : "goes on"),
  })
  const take = (result: Effect.Effect<void, Unavailable> = Effect.void) => {
    const next = resume
    resume = undefined
    next?.(result)
  }
  const stop = request.rest((outcome) =>
    events.push(Result.isSuccess(outcome) ? "reply" : `failed: ${outcome.failure.message}`),
  )
  return { events, request, take, stop }
}

const failed = new Unavailable({ message: "no" })

describe("the responses of a request", () => {
  it("go to the reader one after the other, and the reply follows them", () => {
    const { events, request, take } = harness()
    for (const number of [1, 2, 3]) request.respond(Result.succeed(response(number)))
    request.end()
    expect([events, request.isOver, request.isSettled]).toEqual([["1"], true, false])
    take()
    take()
    expect(events).toEqual(["1", "2", "3"])
    take()
    expect(events).toEqual(["1", "2", "3", "reply"])
  })

  it("return their credit once the reader has taken them", () => {
    const { events, request, take } = harness()
    for (let number = 0; number < 16; number++) request.respond(Result.succeed(response(number)))
    expect(events).toEqual(["0", "waits"])
    for (let count = 0; count < 8; count++) take()
    expect(events.filter((event) => !/^\d/.test(event))).toEqual(["waits", "give 8", "goes on"])
  })

  it("return their credit if an error before them has ended the request", () => {
    const { events, request, take } = harness()
    request.respond(Result.succeed(response(0)))
    request.respond(Result.fail(failed))
    expect(events).toEqual(["0"])
    for (let number = 0; number < 20; number++) request.respond(Result.succeed(response(number)))
    take()
    expect(events).toEqual(["0", "give 8", "give 8", "failed: no"])
  })

  it("count as memory of the caller while they wait behind one that the reader takes", () => {
    let held = 0
    const { request, take, stop } = harness(false, (bytes) => (held += bytes))
    const sized: Response = { outputs: [undefined, Tensor.make("UINT8", [10], new Uint8Array(10))], parameters: {} }
    for (let number = 0; number < 4; number++) request.respond(Result.succeed(sized))
    expect(held).toBe(30)
    take()
    expect(held).toBe(20)
    stop()
    expect(held).toBe(0)
  })

  it("may be errors, in their order, for a reader that takes them", () => {
    const { events, request, take } = harness(true)
    request.respond(Result.succeed(response(0)))
    request.respond(Result.fail(failed))
    request.respond(Result.succeed(response(1)), true)
    request.end()
    for (const _ of [0, 1, 2]) take()
    expect(events).toEqual(["0", "no", "1", "reply"])
  })

  it("of which one cannot be taken end the request, and tell the process", () => {
    const { events, request, take } = harness()
    for (const number of [0, 1]) request.respond(Result.succeed(response(number)))
    take(Effect.fail(failed))
    request.respond(Result.succeed(response(2)))
    expect(events).toEqual(["0", "cancel", "failed: no"])
  })

  it("are dropped when the caller leaves", () => {
    const { events, request, stop } = harness()
    for (let number = 0; number < 16; number++) request.respond(Result.succeed(response(number)))
    stop()
    request.respond(Result.succeed(response(16)))
    request.end()
    expect(events.filter((event) => event !== "interrupted")).toEqual(["0", "waits", "goes on", "cancel"])
  })

  it("are dropped when the caller leaves after the process has ended the request", () => {
    const { events, request, stop } = harness()
    for (const number of [0, 1]) request.respond(Result.succeed(response(number)))
    request.end()
    stop()
    expect(events.filter((event) => event !== "interrupted")).toEqual(["0"])
  })

  it("that the model drops when it stops are missed: the request fails", () => {
    const { request } = harness()
    request.respond(Result.succeed(response(0)))
    request.cancel()
    request.end()
    expect(request.outcome).toEqual(Result.fail(new Unavailable({ message: "the model is stopping" })))
  })

  it("are dropped when the process dies", () => {
    const { events, request } = harness()
    for (let number = 0; number < 16; number++) request.respond(Result.succeed(response(number)))
    request.end(failed)
    expect(events.filter((event) => event !== "interrupted")).toEqual(["0", "waits", "goes on", "failed: no"])
  })
})
