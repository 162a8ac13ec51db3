import { describe, expect, it } from "vitest"
import type { Sequences } from "../../api/Model.ts"
import { Refusal } from "../../api/Refusal.ts"
import { Invalid } from "../Invalid.ts"
import * as Session from "./Session.ts"

const numbers: Sequences = { maxIdle: 30, hasTextIds: false }
const texts: Sequences = { maxIdle: undefined, hasTextIds: true }

const stepOf = (id: string, sequences = numbers, answered = 0) => {
  try {
    return Session.stepOf({ id, answered }, sequences, false).id
  } catch (error) {
    return error instanceof Invalid ? error.message : error
  }
}

describe("the id of a sequence", () => {
  it("is made, and another one each time", () => {
    const ids = new Set(Array.from({ length: 100 }, () => Session.begin().id))
    expect(ids.size).toBe(100)
    for (const id of ids) expect(Number.isSafeInteger(Number(id)) && Number(id) > 0).toBe(true)
  })

  it("is a number if it has digits alone, and a text otherwise", () => {
    expect([stepOf("7"), stepOf("18446744073709551615"), stepOf("x7"), stepOf("-1")]).toEqual([
      7n,
      18446744073709551615n,
      "x7",
      "-1",
    ])
    expect([stepOf("7", texts), stepOf("0", texts)]).toEqual(["7", "0"])
  })

  it("is refused if the server has no sequence of it", () => {
    const range = "the sequence id must be from 1 to 18446744073709551615"
    expect([stepOf("0"), stepOf("18446744073709551616")]).toEqual([range, range])
    expect(stepOf("")).toBe("the sequence id is missing")
    expect(stepOf("é".repeat(65))).toBe("the sequence id has 130 bytes, more than 128")
  })
})

describe("a session", () => {
  const step = { id: 7n, isStart: true, isEnd: false }
  const session = { id: "7", answered: 0 }

  it("starts with its first request, and continues with the next ones", () => {
    expect(Session.stepOf(session, numbers, false)).toEqual(step)
    const continued = Session.afterAnswer(session, step)
    expect(continued).toEqual({ id: "7", answered: 1 })
    expect(Session.stepOf(continued, numbers, true)).toEqual({ id: 7n, isStart: false, isEnd: true })
  })

  it("is followed by one with another id after its end", () => {
    const next = Session.afterAnswer({ id: "7", answered: 2 }, { ...step, isEnd: true })
    expect(next.answered).toBe(0)
    expect(next.id).not.toBe("7")
  })

  it("starts again after a failed start, and once the server has lost it", () => {
    const open = { id: "7", answered: 2 }
    expect(Session.afterFailure(session, new Refusal("wrong", 400, "InvalidRequest"))).toBe(session)
    expect(Session.afterFailure(open, new Refusal("wrong", 400, "InvalidRequest"))).toBe(open)
    expect(Session.afterFailure(open, new Refusal("gone", 400, "SequenceNotFound"))).toEqual(session)
    const triton = "inference request for sequence 7 to model 'm' must specify the START flag on the first request"
    expect(Session.afterFailure(open, new Refusal(triton, 400))).toEqual(session)
  })

  it("is a whole sequence for a request that is repeated", () => {
    expect(Session.wholeStep("5", numbers)).toEqual({ id: 5n, isStart: true, isEnd: true })
    expect(Session.wholeStep("5", texts)).toEqual({ id: "5", isStart: true, isEnd: true })
  })
})
