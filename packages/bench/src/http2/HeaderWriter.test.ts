import { expect, it } from "vitest"
import { HeaderReader } from "./HeaderReader.ts"
import { type HeaderFields, HeaderWriter } from "./HeaderWriter.ts"

const fields: HeaderFields = [
  [":method", "POST"],
  [":path", `/${"long".repeat(100)}`],
  ["te", "trailers"],
]

it("writes all once, and then only where the server has them", () => {
  const writer = new HeaderWriter(fields)
  const reader = new HeaderReader()
  const blocks = [writer.block(), writer.block(), writer.block()]
  for (const block of blocks) expect([...reader.read(block)]).toEqual(fields)
  expect(blocks.map((block) => block.length).slice(1)).toEqual([3, 3])
})

it("writes in full for a server that remembers less than usual", () => {
  const writer = new HeaderWriter(fields)
  const reader = new HeaderReader()
  reader.read(writer.block())
  reader.read(writer.block())
  writer.limit(0)
  // The client must acknowledge a smaller table (RFC 7541, 4.2).
  expect(writer.block()[0]).toBe(0x20)
  for (let count = 0; count < 2; count++) expect([...reader.read(writer.block())]).toEqual(fields)
})

it("acknowledges a smaller table in front of any block", () => {
  const writer = new HeaderWriter(fields)
  writer.limit(100)
  expect(writer.block([["x", "y"]])[0]).toBe(0x20)
  expect([...new HeaderReader().read(writer.block())]).toEqual(fields)
})

it("writes other fields so that those which are remembered stay where they are", () => {
  const writer = new HeaderWriter(fields)
  const reader = new HeaderReader()
  const other: HeaderFields = [["x", "y"]]
  for (const own of [undefined, other, undefined, other, undefined]) {
    expect([...reader.read(writer.block(own))]).toEqual(own ?? fields)
  }
})

it("has nothing remembered that is too large for it", () => {
  const large: HeaderFields = [["x", "y".repeat(5000)]]
  const writer = new HeaderWriter(large)
  for (let count = 0; count < 2; count++) expect([...new HeaderReader().read(writer.block())]).toEqual(large)
})
