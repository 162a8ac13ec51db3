import { expect, it } from "vitest"
import { events } from "./events.ts"

const response = (...chunks: ReadonlyArray<string>) => {
  const bytes = chunks.map((chunk) => new TextEncoder().encode(chunk))
  return new Response(new Blob(bytes).stream())
}

const read = async (...chunks: ReadonlyArray<string>) => {
  const found: Array<string> = []
  for await (const data of events(response(...chunks))) found.push(data)
  return found
}

it("reads events wherever their bytes are divided", async () => {
  expect(await read('data: {"a":', "1}\n", "\ndata: 2\n\n")).toEqual(['{"a":1}', "2"])
})

it("joins lines of data, and ignores comments and other fields", async () => {
  expect(await read(": hello\n\nevent: x\ndata: 1\ndata:2\n\n")).toEqual(["1\n2"])
})

it("ignores an event without its end", async () => {
  expect(await read("data: 1\n\ndata: 2")).toEqual(["1"])
})
