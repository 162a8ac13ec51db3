import { describe, expect, it } from "vitest"
import { read, write } from "./Json.ts"
import { formOf, initial, optionOf } from "./JsonForm.ts"

const tree = {
  $ref: "#/$defs/Tree",
  $defs: {
    Tree: {
      type: "object",
      properties: { name: { type: "string" }, children: { type: "array", items: { $ref: "#/$defs/Tree" } } },
      required: ["name", "children"],
    },
    Loop: { $ref: "#/$defs/Loop" },
    "a/b": { type: "boolean" },
  },
}

describe("the form of a schema", () => {
  it.each([
    [{ type: "string" }, { kind: "text" }],
    [
      { type: "string", maxLength: 5 },
      { kind: "text", maxLength: 5 },
    ],
    [{ type: "string", pattern: "^-?\\d+$" }, { kind: "digits" }],
    [{ enum: ["a", 1, null] }, { kind: "choice", values: ["a", 1, null] }],
    [{ const: "a" }, { kind: "choice", values: ["a"] }],
    [{ anyOf: [{ const: "a" }, { enum: ["b"] }] }, { kind: "choice", values: ["a", "b"] }],
    [
      { type: "boolean", description: "why" },
      { kind: "boolean", description: "why" },
    ],
    [{ type: "null" }, { kind: "choice", values: [null] }],
    [true, { kind: "any" }],
    [{ $ref: "https://elsewhere.example/schema" }, { kind: "any" }],
    [{ $ref: "#/$defs/Loop" }, { kind: "any" }],
    [{ $ref: "#/$defs/a~1b" }, { kind: "boolean" }],
  ])("%j", (schema, expected) => {
    expect(formOf(typeof schema === "object" ? schema : {}, tree)).toEqual(expected)
  })

  it("has bounds of numbers", () => {
    expect(formOf({ type: "integer", minimum: 1, exclusiveMaximum: 5 }, {})).toEqual({
      kind: "number",
      isInteger: true,
      minimum: 1,
      maximum: 5,
      isAboveMinimum: false,
      isBelowMaximum: true,
    })
  })

  it("is that of the number where strings are NaN and the infinities", () => {
    const form = formOf({ anyOf: [{ type: "number" }, { enum: ["NaN"] }, { enum: ["Infinity", "-Infinity"] }] }, {})
    expect(form.kind).toBe("number")
  })

  it("has members that are optional, and others", () => {
    const form = formOf(
      { type: "object", properties: { a: {}, b: {} }, required: ["b"], additionalProperties: false },
      {},
    )
    expect(form).toEqual({
      kind: "object",
      members: [
        { name: "a", schema: {}, required: false },
        { name: "b", schema: {}, required: true },
      ],
    })
    expect(formOf({ type: "object", additionalProperties: { type: "string" } }, {})).toMatchObject({
      rest: { type: "string" },
    })
  })

  it("merges allOf", () => {
    const form = formOf({ type: "integer", allOf: [{ minimum: 1 }, { maximum: 9 }] }, {})
    expect(form).toMatchObject({ kind: "number", minimum: 1, maximum: 9 })
  })

  it("has names for the options of a union", () => {
    const card = { type: "object", properties: { kind: { const: "card" }, number: { type: "string" } } }
    const form = formOf({ oneOf: [card, { type: "string" }, { type: "null" }] }, {})
    expect(form.kind === "union" && form.options.map(({ name }) => name)).toEqual(["card", "text", "null"])
  })

  it("has the length of a tuple", () => {
    const form = formOf({ type: "array", prefixItems: [{ type: "string" }], items: false, minItems: 1 }, {})
    expect(form).toMatchObject({ first: [{ type: "string" }], items: undefined, minItems: 1, maxItems: 1 })
  })
})

describe("the first value", () => {
  it.each([
    [tree, { name: "", children: [] }],
    [{ type: "integer", minimum: 3 }, 3],
    [{ type: "number", exclusiveMinimum: 0, exclusiveMaximum: 0.5 }, 0.25],
    [{ type: "string", default: "x" }, "x"],
    [{ type: "array", items: { type: "boolean" }, minItems: 2 }, [false, false]],
    [{ type: "string", pattern: "^-?\\d+$" }, "0"],
  ])("of %j", (schema, expected) => {
    expect(initial(schema, schema)).toEqual(expected)
  })

  it("ends where a schema requires itself", () => {
    const endless = { type: "object", properties: { a: { $ref: "#" } }, required: ["a"] }
    expect(JSON.stringify(initial(endless, endless)).length).toBeLessThan(200)
  })
})

it("the option of a value is the first that it fits", () => {
  const options = [
    { schema: { type: "object", properties: { kind: { const: "a" } }, required: ["kind"] } },
    { schema: { type: "object", properties: { kind: { const: "b" } }, required: ["kind"] } },
    { schema: { type: "array", items: { type: "integer" } } },
  ]
  expect([{ kind: "b" }, [1], "none"].map((value) => optionOf(value, options, {}))).toEqual([1, 2, 0])
})

it("JSON keeps integers beyond the doubles", () => {
  const text = '{"a":[9007199254740993,1.5,-1],"b":"9007199254740993","c":null}'
  expect(read(text)).toMatchObject({ a: [9007199254740993n, 1.5, -1] })
  expect(write(read(text))).toBe(text)
})
