import { expect, it } from "vitest"
import { ResponseCredit, responsesAhead } from "./ResponseCredit.ts"

const harness = () => {
  const events: Array<string> = []
  const credit = new ResponseCredit({
    give: (count) => void events.push(`give ${count}`),
    onWait: (waits) => void events.push(waits ? "waits" : "goes on"),
  })
  const send = (count: number) => {
    for (let index = 0; index < count; index++) credit.sent()
  }
  const take = (count: number) => {
    for (let index = 0; index < count; index++) credit.taken()
  }
  return { credit, events, send, take }
}

it("credit returns once half of the responses are taken", () => {
  const { events, send, take } = harness()
  send(10)
  take(7)
  expect(events).toEqual([])
  take(1)
  expect(events).toEqual(["give 8"])
  send(8)
  take(10)
  expect(events).toEqual(["give 8", "give 8"])
})

it("the process waits from the last response that it may send, until it has credit again", () => {
  const { events, send, take } = harness()
  send(responsesAhead - 1)
  expect(events).toEqual([])
  send(1)
  expect(events).toEqual(["waits"])
  take(7)
  expect(events).toEqual(["waits"])
  take(1)
  expect(events).toEqual(["waits", "give 8", "goes on"])
})

it("a request that is over needs no credit, and waits no longer", () => {
  const { credit, events, send, take } = harness()
  send(responsesAhead)
  credit.close()
  take(16)
  send(100)
  expect(events).toEqual(["waits", "goes on"])
})
