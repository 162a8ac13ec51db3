import { expect, it } from "vitest"
import { ExecutionHeaderReader } from "./ExecutionHeader.ts"

it("reads the number of an execution and its fields", () => {
  const reader = new ExecutionHeaderReader()
  expect(reader.read('{"x":17,"r":[{"d":1}]}')).toEqual({ execution: 17, fields: { r: [{ d: 1 }] } })
  expect(reader.read('{"x":18,"r":[{"d":1}]}')).toEqual({ execution: 18, fields: { r: [{ d: 1 }] } })
  expect(reader.read('{"x":18,"q":0,"final":1}')).toEqual({ execution: 18, fields: { q: 0, final: 1 } })
})

it("parses the same fields once", () => {
  const reader = new ExecutionHeaderReader()
  const { fields } = reader.read('{"x":1,"r":[]}')
  expect(reader.read('{"x":2,"r":[]}').fields).toBe(fields)
  expect(reader.read('{"x":2,"r":[1]}').fields).not.toBe(fields)
})

it("keeps a bounded number of fields, and no long ones", () => {
  const reader = new ExecutionHeaderReader()
  const long = `{"x":1,"e":"${"a".repeat(3000)}"}`
  expect(reader.read(long).fields).not.toBe(reader.read(long).fields)
  const { fields } = reader.read('{"x":1,"r":[]}')
  for (let number = 0; number < 200; number++) reader.read(`{"x":1,"q":${number}}`)
  expect(reader.read('{"x":1,"r":[]}').fields).not.toBe(fields)
})

it.each([
  "",
  "{}",
  '{"x":1}',
  '{"x":,"r":[]}',
  '{"x":"1","r":[]}',
  '{"x":1.5,"r":[]}',
  '{"r":[],"x":1}',
  '{"x":1,"r":[',
])("refuses %j", (text) => {
  expect(() => new ExecutionHeaderReader().read(text)).toThrow(Error)
})
