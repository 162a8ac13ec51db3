/** Events of a turn in one write, whatever their documents are, and the first one without waiting for a second. */
import { expect, it } from "vitest"
import type { OutgoingResponse } from "../port/HttpExchange.ts"
import { type Document, EventStream } from "./EventStream.ts"

/** A response that records its writes, of which it takes `room` before it is full. */
const recorded = (room = Infinity) => {
  const writes: Array<string> = []
  let drain = () => {}
  const response: OutgoingResponse = {
    statusCode: 200,
    headersSent: true,
    writableEnded: false,
    on: (event, listener) => {
      if (event === "drain") drain = listener
      return response
    },
    off: () => response,
    setHeader: () => {},
    writeContinue: () => {},
    writeHead: () => {},
    addTrailers: () => {},
    write: (chunk: string | Uint8Array) => writes.push(Buffer.from(chunk).toString()) < room,
    end: (chunk: string | Uint8Array = "") => writes.push(`${Buffer.from(chunk).toString()}end`),
    destroy: () => {},
    cork: () => {},
    uncork: () => {},
  }
  return { response, writes, drain: () => drain() }
}

const turn = () => new Promise<void>((resolve) => process.nextTick(resolve))

const template = { before: '{"T":"', after: '"}' }
const text = (text: string): Document => ({ template, text })

it("writes the events of a turn together, at its end", async () => {
  const { response, writes } = recorded()
  const events = new EventStream(response)
  events.write(text("a"))
  expect(writes).toEqual([])
  events.write(text("schön"))
  await turn()
  expect(writes).toEqual(['data: {"T":"a"}\n\ndata: {"T":"schön"}\n\n'])
  events.write(text("c"))
  await turn()
  expect(writes.slice(1)).toEqual(['data: {"T":"c"}\n\n'])
})

it("keeps the order of texts, other documents and templates", async () => {
  const { response, writes } = recorded()
  const events = new EventStream(response)
  const other = { before: '{"U":"', after: '"}' }
  for (const document of [text("a"), text("b"), "{}", Buffer.from('"ö"'), { template: other, text: "c" }, text("d")]) {
    events.write(document)
  }
  events.end()
  expect(writes).toEqual([
    'data: {"T":"a"}\n\ndata: {"T":"b"}\n\ndata: {}\n\ndata: "ö"\n\ndata: {"U":"c"}\n\ndata: {"T":"d"}\n\nend',
  ])
  await turn()
  expect(writes).toHaveLength(1)
})

it("writes many events, and a large document, before the end of the turn", () => {
  const { response, writes } = recorded()
  const events = new EventStream(response)
  for (let index = 0; index < 200; index++) events.write(text("x".repeat(100)))
  expect(writes).toHaveLength(1)
  const large = JSON.stringify("y".repeat(20_000))
  events.write(Buffer.from(large))
  events.write(text("z"))
  events.end()
  const event = (document: string) => `data: ${document}\n\n`
  const small = event(`{"T":"${"x".repeat(100)}"}`).repeat(200)
  expect(writes.join("")).toBe(`${small}${event(large)}${event('{"T":"z"}')}end`)
})

it("says when the client takes no more, until it drains", async () => {
  const { response, drain } = recorded(1)
  const events = new EventStream(response)
  expect(events.write(text("a"))).toBe(true)
  await turn()
  expect(events.write(text("b"))).toBe(false)
  drain()
  expect(events.write(text("c"))).toBe(true)
})
