import * as fc from "fast-check"
import { expect, it } from "vitest"
import * as JsonParts from "./JsonParts.ts"

it("the parts of an array are its elements, and those of an object its members", () => {
  fc.assert(
    fc.property(fc.array(fc.jsonValue()), fc.constantFrom(0, 2), (values, indent) => {
      const parts = JsonParts.elements(JSON.stringify(values, null, indent)) ?? []
      expect(parts.map((part) => JSON.parse(part))).toEqual(JSON.parse(JSON.stringify(values)))
    }),
  )
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue(), { noNullPrototype: true }), (values) => {
      const parts = JsonParts.members(JSON.stringify(values)) ?? new Map<string, string>()
      const parsed = [...parts].map(([name, part]) => [name, JSON.parse(part)])
      expect(Object.fromEntries(parsed)).toEqual(JSON.parse(JSON.stringify(values)))
    }),
  )
})

it("numbers keep their digits, and other values are unchanged", () => {
  expect(JsonParts.elements("[12345678901234567890, 1.50, NaN]")).toEqual(["12345678901234567890", "1.50", "NaN"])
})

it("anything else has no parts", () => {
  for (const text of ["1", '"[]"', "", "null"]) {
    expect(JsonParts.elements(text)).toBeUndefined()
    expect(JsonParts.members(text)).toBeUndefined()
  }
})
