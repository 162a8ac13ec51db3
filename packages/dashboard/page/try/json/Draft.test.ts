import { describe, expect, it } from "vitest"
import { jsonOf, NotJson, readJson, readLeaf, textOf } from "./Draft.ts"
import { formOf } from "./JsonForm.ts"

const number = (text: string, schema: object) => readLeaf(text, formOf({ type: "number", ...schema }, {}))

describe("a number", () => {
  it.each([
    ["1.50", {}, 1.5],
    ["-0", {}, -0],
    ["1e3", {}, 1000],
    ["3", { type: "integer" }, 3],
  ])("%s is %j", (text, schema, expected) => {
    const draft = number(text, schema)
    expect(jsonOf(draft)).toBe(expected)
    expect(textOf(draft)).toBe(text)
  })

  it.each([
    ["", {}, "a number is needed"],
    ["1e", {}, "a number is needed"],
    ["1.5", { type: "integer" }, "an integer is needed"],
    ["0", { exclusiveMinimum: 0 }, "must be above 0"],
    ["5", { maximum: 4 }, "must be at most 4"],
  ])("%s is refused: %j", (text, schema, problem) => {
    const json = jsonOf(number(text, schema))
    expect(json instanceof NotJson && json.problem).toBe(problem)
  })
})

it("the problem of a form names the member that has it", () => {
  const json = jsonOf({ a: [{ b: 1 }, { b: number("x", {}) }], left: undefined })
  expect(json instanceof NotJson && json.problem).toBe("a[1].b: a number is needed")
  expect(jsonOf({ a: 1, left: undefined })).toEqual({ a: 1 })
})

it("any JSON is written as text", () => {
  expect(jsonOf(readJson('{"a": 1}'))).toEqual({ a: 1 })
  expect(readJson("{")).toBeInstanceOf(NotJson)
})
