import * as fc from "fast-check"
import { expect, it } from "vitest"
import { header, type HttpReply, ReplyReader } from "./ReplyReader.ts"

/** Reads bytes in parts of these lengths, each after the previous one is read. */
const read = (text: string, lengths: Iterator<number>, wantsBody: boolean) => {
  const replies: Array<HttpReply> = []
  const reader = new ReplyReader(wantsBody, (reply) => replies.push(reply))
  const all = Buffer.from(text, "latin1")
  let problem: string | undefined
  for (let offset = 0; offset < all.length && problem === undefined;) {
    const part = Buffer.from(all.subarray(offset, offset + lengths.next().value))
    problem = reader.read(part)
    part.fill(0xee)
    offset += part.length
  }
  const ended = reader.end()
  const shown = replies.map(({ status, length, body, keepsAlive }) => ({
    status,
    length,
    body: body.toString(),
    keepsAlive,
  }))
  return { replies: shown, problem, ended }
}

const all = (text: string) => read(text, [Infinity].values(), true)

const replies = [
  ["a length", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", { status: 200, body: "hello", keepsAlive: true }],
  ["no body", "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", { status: 200, body: "", keepsAlive: true }],
  ["no reason", "HTTP/1.1 204\r\n\r\n", { status: 204, body: "", keepsAlive: true }],
  [
    "chunks",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1;a=b\r\n \r\nA \r\n0123456789\r\n0\r\nx: y\r\n\r\n",
    { status: 200, body: "hello 0123456789", keepsAlive: true },
  ],
  [
    "an announcement",
    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n!",
    { status: 200, body: "!", keepsAlive: true },
  ],
  [
    "its end",
    "HTTP/1.1 200 OK\r\nConnection: Close\r\nContent-Length: 2\r\n\r\nok",
    { status: 200, body: "ok", keepsAlive: false },
  ],
  ["the old version", "HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok", { status: 200, body: "ok", keepsAlive: false }],
  ["no length", "HTTP/1.1 500 Oh\r\n\r\nall of it", { status: 500, body: "all of it", keepsAlive: false }],
] as const

it.each(replies)("reads a reply with %s, however it is cut", (_, text, expected) => {
  fc.assert(
    fc.property(fc.infiniteStream(fc.integer({ min: 1, max: 30 })), fc.boolean(), (lengths, wantsBody) => {
      const { replies, problem } = read(text, lengths, wantsBody)
      expect(problem).toBeUndefined()
      const body = wantsBody || expected.status >= 300 ? expected.body : ""
      expect(replies).toEqual([{ ...expected, body, length: expected.body.length }])
    }),
  )
})

it.each([
  ["another protocol", "SSH-2.0-x\r\n\r\n", "not an HTTP/1.1 response"],
  ["no length", "HTTP/1.1 200 OK\r\ncontent-length: 1e3\r\n\r\n", "invalid content-length: 1e3"],
  ["no chunk", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nx\r\n", 'invalid chunk size: "x"'],
  ["a chunk too long", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nxy\r\n", "longer than its size"],
  ["two replies", "HTTP/1.1 204\r\n\r\nHTTP/1.1 204\r\n\r\n", "more than one response to a request"],
  ["an endless head", `HTTP/1.1 200 OK\r\nx: ${"y".repeat(70_000)}`, "the response head has more than"],
  [
    "an endless line",
    `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${"0".repeat(70_000)}`,
    "a line of the chunked body has more than",
  ],
])("refuses %s", (_, text, message) => {
  expect(all(text).problem).toContain(message)
})

it("knows whether the end of the connection ends a reply or cuts one", () => {
  expect(all("HTTP/1.1 200 OK\r\n\r\npart").ended).toBe(true)
  expect(all("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\npart").ended).toBe(false)
})

it("finds headers whatever the case of their names", () => {
  const head = "HTTP/1.1 200 OK\r\nA: 1\r\nContent-Type:\t text/plain \r\nB: 2"
  expect(header(head, "content-type")).toBe("text/plain")
  expect(header(head, "b")).toBe("2")
  expect(header(head, "ok")).toBeUndefined()
})
