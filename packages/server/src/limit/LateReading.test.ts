import { describe, expect, it } from "vitest"
import { type EventLoop, LateReading } from "./LateReading.ts"

/** A loop whose time passes by calls. */
const start = () => {
  let now = 1000
  let slept = 0
  let end = () => {}
  const acted: Array<string> = []
  const loop: EventLoop = {
    now: () => now,
    slept: () => slept,
    afterReads: (call) => {
      end = call
    },
  }
  const reading = new LateReading({ acted: (limit) => acted.push(limit) }, loop)
  /** A turn that reads requests for this time, and is busy with other work for that one. */
  const turn = (reads: number, work: number, count = 4) => {
    const first = reading.waited()
    for (let request = 2; request < count; request++) reading.waited()
    now += reads
    const last = reading.waited()
    end()
    now += work
    return { first, last }
  }
  const sleep = (millis: number) => {
    now += millis
    slept += millis
  }
  return { reading, turn, sleep, acted }
}

describe("the time that a request has waited", () => {
  it("begins now if the loop has slept", () => {
    const { reading, turn, sleep } = start()
    turn(1, 1)
    sleep(50)
    turn(1, 1)
    sleep(50)
    expect(reading.waited()).toBeCloseTo(1, 5)
  })

  it("begins between the reads of the last turn and now if the loop was busy", () => {
    const { turn } = start()
    turn(0, 0)
    turn(10, 30)
    const { first, last } = turn(10, 30)
    expect(first).toBeCloseTo(20, 5)
    expect(last).toBeCloseTo(30, 5)
  })

  it("counts the time of a handler that has blocked the loop", () => {
    const { reading, turn, sleep } = start()
    turn(0, 0)
    sleep(100)
    turn(0, 60)
    expect(reading.waited()).toBeCloseTo(30, 5)
  })
})

describe("a request is refused", () => {
  it("with a deadline, once half of its time has passed unread, turn after turn", () => {
    const { reading, turn, acted } = start()
    turn(0, 0)
    turn(10, 30)
    turn(10, 30)
    const early = turn(10, 30).last
    expect(reading.refusal(early, 50)).toBeUndefined()
    const { last } = turn(10, 30)
    expect(last).toBeCloseTo(30, 5)
    expect(reading.refusal(last, 61)).toBeUndefined()
    expect(reading.refusal(last, 59)).toMatchObject({ _tag: "QueueFull", retryAfter: 100 })
    expect(acted).toEqual(["late_reading"])
  })

  it("not after a single pause of the loop", () => {
    const { reading, turn, sleep } = start()
    turn(0, 0)
    sleep(10)
    turn(0, 80)
    const waited = reading.waited()
    expect(waited).toBeCloseTo(40, 5)
    expect(reading.refusal(waited, 100)).toBeUndefined()
  })

  it("not after long turns that read few requests, as those of a server that has just started", () => {
    const { reading, turn } = start()
    for (let count = 0; count < 100; count++) turn(0, 80, 2)
    const waited = reading.waited()
    expect(waited).toBeCloseTo(40, 5)
    expect(reading.refusal(waited, 60)).toBeUndefined()
  })

  it("with its deadline, if that has passed", () => {
    const { reading, turn } = start()
    turn(0, 0)
    const { last } = turn(60, 0)
    expect(reading.refusal(last, 50)).toMatchObject({ _tag: "DeadlineExceeded" })
  })

  it("not after less than 20 ms, which say nothing", () => {
    const { reading, turn } = start()
    for (let count = 0; count < 9; count++) turn(0, 30)
    const waited = reading.waited()
    expect(waited).toBeCloseTo(15, 5)
    expect(reading.refusal(waited, 16)).toBeUndefined()
  })

  it("not without a deadline, however late it is read", () => {
    const { reading, turn } = start()
    for (let count = 0; count < 100; count++) {
      const { last } = turn(1000, 1000)
      expect(reading.refusal(last, undefined)).toBeUndefined()
    }
  })
})
