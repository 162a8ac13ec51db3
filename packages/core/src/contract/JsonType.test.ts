import { Schema } from "effect"
import { expect, it } from "vitest"
import { fromJsonSchema } from "./JsonType.ts"

const read = (schema: object, definitions: Readonly<Record<string, object>> = {}) =>
  fromJsonSchema({ schema, definitions }).type

const unknown = { kind: "unknown" }

it.each([
  [{ type: "string" }, { kind: "string" }],
  [{ const: "a" }, { kind: "literals", values: ["a"] }],
  [{ enum: ["a", 1, null] }, { kind: "union", members: [{ kind: "literals", values: ["a", 1] }, { kind: "null" }] }],
  [{ enum: [{ a: 1 }] }, unknown],
  [{ type: ["string", "null"] }, { kind: "union", members: [{ kind: "string" }, { kind: "null" }] }],
  [{ oneOf: [{ type: "string" }, {}] }, unknown],
  [{ anyOf: [] }, unknown],
  [
    { type: "integer", minimum: 1, maximum: 2 ** 53 - 1 },
    { kind: "integer", bounds: [{ keyword: "minimum", limit: 1 }] },
  ],
  [
    { type: "number", minimum: "1" },
    { kind: "finite", bounds: [] },
  ],
  [{ type: "array" }, { kind: "array", items: unknown }],
  [
    { type: "array", prefixItems: [{ type: "null" }], minItems: 1, items: false },
    { kind: "tuple", elements: [{ type: { kind: "null" }, optional: false }], rest: undefined },
  ],
  [
    { type: "object", properties: 3, required: {}, allOf: [3] },
    { kind: "object", members: [], rest: undefined },
  ],
  [{ $ref: "http://elsewhere" }, unknown],
  [{ $ref: "#/$defs/constructor" }, unknown],
  [{ type: "elephant" }, unknown],
  [{ type: 3 }, unknown],
  [[], unknown],
])("reads %j", (schema, expected) => {
  expect(read(schema)).toEqual(expected)
})

it("reads the Schemas of Effect", () => {
  const number = fromJsonSchema(Schema.toJsonSchemaDocument(Schema.Struct({ n: Schema.Number, b: Schema.BigInt }))).type
  expect(number).toMatchObject({
    members: [
      { name: "n", type: { kind: "number" } },
      { name: "b", type: { kind: "bigint" } },
    ],
  })
})

it("names of definitions are JSON pointers", () => {
  expect(read({ $ref: "#/$defs/a~1b~0" }, { "a/b~": { type: "null" } })).toEqual({ kind: "reference", name: "a/b~" })
})

it("a definition that only names itself accepts everything", () => {
  const definitions = {
    a: { $ref: "#/$defs/b" },
    b: { anyOf: [{ $ref: "#/$defs/a" }, { type: "null" }] },
    list: { anyOf: [{ type: "null" }, { type: "array", items: { $ref: "#/$defs/list" } }] },
  }
  const schema = { type: "array", prefixItems: [{ $ref: "#/$defs/a" }, { $ref: "#/$defs/list" }] }
  const { definitions: found } = fromJsonSchema({ schema, definitions })
  expect(found.get("list")).toMatchObject({ kind: "union" })
  expect([found.get("a")?.kind, found.get("b")?.kind]).toContain("unknown")
})

it("limits depth and size", () => {
  let deep: object = { type: "null" }
  for (let level = 0; level < 5000; level++) deep = { type: "array", items: deep }
  const text = JSON.stringify(read(deep))
  expect(text).toContain("unknown")
  expect(text.length).toBeLessThan(3000)
  const wide = {
    type: "object",
    properties: Object.fromEntries(Array.from({ length: 20_000 }, (_, n) => [`m${n}`, { type: "null" }])),
  }
  expect(read(wide)).toMatchObject({ kind: "object" })
  expect(JSON.stringify(read(wide)).split("unknown").length).toBeGreaterThan(9_000)
})
