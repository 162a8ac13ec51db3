import { expect, it } from "vitest"
import type { Document } from "./Document.ts"
import { example } from "./Example.ts"

const document: Document = {
  info: { title: "t", version: "1" },
  paths: {},
  components: {
    schemas: {
      "a/b": { type: "string", enum: ["one", "two"] },
      Tree: { type: "object", required: ["inner"], properties: { inner: { $ref: "#/components/schemas/Tree" } } },
    },
  },
}

it.each([
  [{ type: "object", required: ["a"], properties: { a: { type: "integer", minimum: 3 }, b: {} } }, { a: 3 }],
  [{ type: "array", minItems: 2, items: { type: "number" } }, [0, 0]],
  [{ type: "array", prefixItems: [{ type: "boolean" }, { const: 5 }] }, [false, 5]],
  [{ anyOf: [{ type: ["string", "null"] }, {}] }, "text"],
  [{ $ref: "#/components/schemas/a~1b" }, "one"],
  [{ type: "string", examples: ["given"] }, "given"],
  [{}, null],
  [{ type: "array", items: true }, [null]],
  [{ type: "object", required: ["a"], properties: { a: true } }, { a: null }],
  [undefined, null],
])("makes an example of %j", (schema, expected) => {
  expect(example(document, schema)).toEqual(expected)
})

it("ends an example of a schema that contains itself", () => {
  expect(JSON.stringify(example(document, { $ref: "#/components/schemas/Tree" })).length).toBeLessThan(200)
})
